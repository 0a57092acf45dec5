//! The `talpf` command: runs applications, and measures the machine.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
