//! Messages of clap about the arguments.

use std::process::ExitCode;

use clap::error::Error;

/// Prints the requested help, or one line with the reason why the arguments are invalid.
pub(super) fn explain(error: &Error) -> ExitCode {
    if !error.use_stderr() {
        return match super::print(&error.to_string()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => super::fail(&error.to_string(), ExitCode::FAILURE),
        };
    }
    super::fail(&one_line(&error.to_string()), ExitCode::from(2))
}

/// Joins the paragraphs of a message of clap, without its own `error:`, its summary of the usage
/// and its closing advice.
fn one_line(message: &str) -> String {
    let lines = message.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("For more information"));
    let line = lines.collect::<Vec<_>>().join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}
