//! Output of a benchmark on the standard output.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process;

/// Prints a line. Ends the process if the line cannot be written, since all later figures would be
/// lost: without a message if the reader has closed the pipe (as for SIGPIPE), otherwise with one.
pub(crate) fn print_line(line: impl Display) {
    let Err(error) = writeln!(io::stdout(), "{line}") else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        process::exit(128 + 13);
    }
    eprintln!("error: cannot write the standard output: {error}");
    process::exit(1);
}
