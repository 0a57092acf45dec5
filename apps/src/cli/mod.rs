//! The command line. Only this module and those below it print.

mod app;
mod compare;
mod gauss_seidel;
mod heat;
mod info;
mod jacobi;
mod matmul;
mod measure;
mod metrics;
mod nbody;
mod on_signal;
mod output;
mod progress_bar;
mod recordings;
mod report;
mod run_options;
mod trace;
mod trace_output;
mod usage;

use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use talpf_apps::Error;

/// Dataflow tasks with one-sided communication: applications and measurements.
#[derive(Debug, Parser)]
#[command(name = "talpf", version, arg_required_else_help = false)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Heat diffusion on a rectangle with the Jacobi method
    Jacobi(jacobi::Options),
    /// Heat diffusion on a rectangle with the Gauss-Seidel method
    GaussSeidel(gauss_seidel::Options),
    /// Gravity between particles, all pairs of them
    Nbody(nbody::Options),
    /// Repeated multiplication of matrices on a ring of row slices
    Matmul(matmul::Options),
    /// The same on a square of ranks that get the tiles they need (MatMulG)
    MatmulG(matmul::SquareOptions),
    /// Run variants of an application against each other, with a table and a page of plots
    Compare(compare::Options),
    /// Traces that runs have left behind
    Trace(trace::Options),
    /// What this machine is, as measured
    Info(info::Options),
}

/// Runs the command that the arguments name. An error is one line on the standard error stream.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage::explain(&error),
    };
    let result = match cli.command {
        Command::Jacobi(options) => jacobi::run(options),
        Command::GaussSeidel(options) => gauss_seidel::run(options),
        Command::Nbody(options) => nbody::run(options),
        Command::Matmul(options) => matmul::run(options),
        Command::MatmulG(options) => matmul::run_square(options),
        Command::Compare(options) => compare::run(options),
        Command::Trace(options) => trace::run(options),
        Command::Info(options) => info::run(options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error.to_string(), ExitCode::FAILURE),
    }
}

/// Says what went wrong, in one piece: ranks say it to one stream. A closed stream is no reason to
/// panic.
fn fail(message: &str, code: ExitCode) -> ExitCode {
    let _ = io::stderr().write_all(format!("error: {message}\n").as_bytes());
    code
}

/// Writes `text` to the standard output; a reader that has seen enough (`head`) is no error.
fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::Write { path: Path::new("the standard output").to_owned(), source: error })
        }
        _ => Ok(()),
    }
}
