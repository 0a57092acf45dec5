//! The `talpf` command: runs applications, and says what the machine can do.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
