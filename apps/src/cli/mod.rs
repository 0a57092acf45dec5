//! Command line. Only this module and its submodules print.

mod app;
mod breakdown;
mod calibrate;
mod compare;
mod defaults;
mod ending_signals;
mod heat;
mod histogram;
mod info;
mod kmeans;
mod launch;
mod launcher;
mod log;
mod mandelbrot;
mod matmul;
mod measure;
mod meeting_options;
mod metrics;
mod nbody;
mod number_within;
mod output;
mod progress_bar;
mod recordings;
mod report;
mod reproduce;
mod run_options;
mod signal_handler;
mod simulation_options;
mod standard_output;
mod time;
mod trace;
mod trace_options;
mod trace_output;
mod trace_pieces;
mod transport_option;
mod usage;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use talpf_apps::Error;
use talpf_apps::gauss_seidel::{self, GaussSeidel};
use talpf_apps::histogram::Histogram;
use talpf_apps::jacobi::{self, Jacobi};
use talpf_apps::kmeans::Kmeans;
use talpf_apps::mandelbrot::Mandelbrot;
use talpf_apps::matmul::Matmul;
use talpf_apps::matmul_g::MatmulG;
use talpf_apps::nbody::Nbody;

use self::defaults::with_help;
use self::heat::{HeatOptions, JacobiOptions};
pub(crate) use self::standard_output::print;

/// Default number of steps of Jacobi; Gauss-Seidel needs half of them.
const STEPS: usize = 1000;

/// Dataflow tasks with one-sided communication: applications and measurements.
#[derive(Debug, Parser)]
#[command(name = "talpf", version, arg_required_else_help = false)]
struct Cli {
    /// Say on the error stream what passes this filter, as info, debug or talpf::runtime=debug [env: TALPF_LOG]
    #[arg(long, global = true, value_name = "FILTER")]
    log: Option<String>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Heat diffusion on a rectangle with the Jacobi method
    #[command(mut_args(with_help(defaults::JACOBI)))]
    Jacobi(app::Options<Jacobi, JacobiOptions>),
    /// Heat diffusion on a rectangle with the Gauss-Seidel method
    #[command(mut_args(with_help(defaults::GAUSS_SEIDEL)))]
    GaussSeidel(app::Options<GaussSeidel, HeatOptions>),
    /// Gravity between all pairs of particles
    #[command(mut_args(with_help(defaults::NBODY)))]
    Nbody(app::Options<Nbody, nbody::ProblemOptions>),
    /// Repeated multiplication of matrices on a ring of row slices
    #[command(mut_args(with_help(defaults::MATMUL)))]
    Matmul(app::Options<Matmul, matmul::ProblemOptions>),
    /// Repeated multiplication on a square of ranks that fetch the tiles they need (MatMulG)
    #[command(mut_args(with_help(defaults::MATMUL_G)))]
    MatmulG(app::Options<MatmulG, matmul::ProblemOptions>),
    /// Histogram whose bins are distributed over the ranks, with remote atomics
    #[command(mut_args(with_help(defaults::HISTOGRAM)))]
    Histogram(app::Options<Histogram, histogram::ProblemOptions>),
    /// Clusters of points by k-means, with a reduction over all ranks in each step
    #[command(mut_args(with_help(defaults::KMEANS)))]
    Kmeans(app::Options<Kmeans, kmeans::ProblemOptions>),
    /// Points of the Mandelbrot set in pieces of uneven size, which a master gives out
    #[command(mut_args(with_help(defaults::MANDELBROT)))]
    Mandelbrot(app::Options<Mandelbrot, mandelbrot::ProblemOptions>),
    /// Compare variants of an application: a table, and a page of plots
    Compare(compare::Options),
    /// Measure a profile of this machine for runs in virtual time, and how well it predicts real runs
    Calibrate(calibrate::Options),
    /// Reproduce chapter 7 of the TALPF thesis in virtual time: a page of plots, and what agrees
    Reproduce(reproduce::Options),
    /// Run an application in several processes, here or on other machines
    Launch(launch::Options),
    /// Run one process for `launch` on another machine
    #[command(hide = true)]
    Part,
    /// Check, summarize, draw, cut and join traces of runs
    Trace(trace::Options),
    /// Properties and measured costs of this machine
    Info(info::Options),
}

/// Runs the command in the arguments. An error is one line on the standard error stream.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage::explain(&error),
    };
    match log::install(cli.log.as_deref()) {
        Ok(()) => run(cli.command),
        Err(error) => explain(&error),
    }
}

fn run(command: Command) -> ExitCode {
    let result = match command {
        Command::Jacobi(options) => options.run(|heat| heat.problem(STEPS, jacobi::block)),
        Command::GaussSeidel(options) => {
            options.run(|heat| heat.problem(STEPS / 2, gauss_seidel::block))
        }
        Command::Nbody(options) => options.run(nbody::ProblemOptions::problem),
        Command::Matmul(options) => options.run(matmul::ProblemOptions::problem),
        Command::MatmulG(options) => options.run(matmul::ProblemOptions::problem),
        Command::Histogram(options) => options.run(histogram::ProblemOptions::problem),
        Command::Kmeans(options) => options.run(kmeans::ProblemOptions::problem),
        Command::Mandelbrot(options) => options.run(mandelbrot::ProblemOptions::problem),
        Command::Compare(options) => compare::run(options),
        Command::Calibrate(options) => calibrate::run(options),
        Command::Reproduce(options) => reproduce::run(options),
        Command::Launch(options) => {
            let line = ["talpf".into()].into_iter().chain(options.line());
            return match Cli::try_parse_from(line) {
                Ok(cli) => launch(&options, &cli.command),
                Err(error) => usage::explain(&error),
            };
        }
        Command::Part => return exit_code(launch::run_part()),
        Command::Trace(options) => trace::run(options),
        Command::Info(options) => info::run(options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => explain(&error),
    }
}

/// Prints an error, and returns the exit code for it.
fn explain(error: &Error) -> ExitCode {
    let code = match error {
        // Exit status of a program that was ended by SIGINT, in a shell; SIGTERM has the same one
        // here.
        Error::Interrupted => ExitCode::from(130),
        _ => ExitCode::FAILURE,
    };
    fail(&error.to_string(), code)
}

/// Runs `command`, which `options` describe, in processes.
fn launch(options: &launch::Options, command: &Command) -> ExitCode {
    let other = match command {
        Command::Compare(_) => Some("compare"),
        Command::Calibrate(_) => Some("calibrate"),
        Command::Reproduce(_) => Some("reproduce"),
        Command::Launch(_) => Some("launch"),
        Command::Part => Some("part"),
        Command::Trace(_) => Some("trace"),
        Command::Info(_) => Some("info"),
        _ => None,
    };
    exit_code(match other {
        Some(command) => Err(Error::NotLaunched { command }),
        None => launch::run(options),
    })
}

/// Returns the exit code of processes that were launched.
fn exit_code(result: Result<Option<u8>, Error>) -> ExitCode {
    match result {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(code)) => ExitCode::from(code),
        Err(error) => explain(&error),
    }
}

/// Writes an error message with a single call, since several ranks may share the stream. Ignores
/// errors of the stream.
fn fail(message: &str, code: ExitCode) -> ExitCode {
    let _ = io::stderr().write_all(format!("error: {message}\n").as_bytes());
    code
}
