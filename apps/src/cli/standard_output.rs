//! The standard output.

use std::io::{self, ErrorKind, Write};
use std::path::Path;

use talpf_apps::Error;

/// Writes `text` to the standard output; a reader that has closed the pipe (`head`) is not an
/// error.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::Write { path: Path::new("the standard output").to_owned(), source: error })
        }
        _ => Ok(()),
    }
}
