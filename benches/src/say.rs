//! What a benchmark says on the standard output.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process;

/// Prints a line. Where nobody reads on (`head`), or nothing can be written, the process ends: the
/// figures to come would be lost. The first without a word, as of SIGPIPE.
pub(crate) fn say(line: impl Display) {
    let Err(error) = writeln!(io::stdout(), "{line}") else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        process::exit(128 + 13);
    }
    eprintln!("error: cannot write the standard output: {error}");
    process::exit(1);
}
