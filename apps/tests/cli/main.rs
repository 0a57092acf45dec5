//! The `talpf` command, run as a user runs it.

mod applications;
mod bad_arguments;
mod bad_files;
mod calibrate;
mod compare;
mod dilate;
mod execute;
mod graph;
mod info;
mod jacobi;
mod keep_going;
mod launch;
mod launch_signals;
mod launch_trace;
mod leftovers;
mod libfabric;
#[cfg(feature = "tracing")]
mod log;
mod machines;
mod pmi;
#[path = "../../../ibverbs-sim/tests/bootstrap/pmi_server.rs"]
mod pmi_server;
mod pmix;
mod polling;
mod process_limits;
mod reproduce;
mod server;
mod settings;
mod signals;
mod simulate;
mod slurm;
#[path = "../../../ibverbs-sim/tests/bootstrap/slurm_server.rs"]
mod slurm_server;
mod tolerance;
mod trace;
mod trace_control;
mod trace_figures;
mod trace_spill;
mod trace_sync_costs;
mod workers_per_rank;

use std::process::{Command, Output, Stdio};

use talpf_apps::gauss_seidel::GaussSeidel;
use talpf_apps::histogram::Histogram;
use talpf_apps::jacobi::Jacobi;
use talpf_apps::kmeans::Kmeans;
use talpf_apps::mandelbrot::Mandelbrot;
use talpf_apps::matmul::Matmul;
use talpf_apps::matmul_g::MatmulG;
use talpf_apps::nbody::Nbody;
use talpf_apps::run::{App, Variant};

/// Runs `talpf` with arguments separated by blanks.
fn talpf(arguments: &str) -> Output {
    talpf_with(&arguments.split_whitespace().collect::<Vec<_>>())
}

fn talpf_with(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the command exists")
}

/// Returns the signals that these tests ignore, as under `nohup` and in the background of a script: so would what
/// they start.
fn ignored_signals() -> Vec<&'static str> {
    let status = std::fs::read_to_string("/proc/self/status").expect("a system with processes");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask");
    let mask = u64::from_str_radix(mask.trim(), 16).expect("a number");
    let signals = (0..).zip(["HUP", "INT", "QUIT"]).filter(|(bit, _)| mask >> bit & 1 == 1);
    signals.map(|(_, name)| name).collect()
}

fn command(arguments: &[&str]) -> Command {
    let program = env!("CARGO_BIN_EXE_talpf");
    let ignored = ignored_signals();
    let mut command = Command::new(if ignored.is_empty() { program } else { "env" });
    if !ignored.is_empty() {
        command.arg(format!("--default-signal={}", ignored.join(","))).arg(program);
    }
    command.args(arguments).stdin(Stdio::null());
    for variable in [
        "TALPF_POLLING_FREQUENCY",
        "TALPF_IDLE",
        "TALPF_CHECK_CONFLICTS",
        "TALPF_CONFIG",
        "PMI_FD",
        "PMI_RANK",
        "PMI_SIZE",
        "PMIX_RANK",
        "PMIX_NAMESPACE",
        "TALPF_LOG",
    ] {
        command.env_remove(variable);
    }
    command
}

/// Returns the standard output of a successful run, whose error stream must be empty.
fn stdout_of(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{:?}: {errors}", output.status);
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// Returns the error of a failed run: exactly one line, with an empty standard output.
fn error_of(output: &Output) -> String {
    let error = String::from_utf8(output.stderr.clone()).expect("text");
    assert!(!output.status.success(), "succeeded, {error:?}");
    assert!(output.stdout.is_empty(), "printed a result beside {error:?}");
    let line = error.strip_prefix("error: ").and_then(|rest| rest.strip_suffix('\n'));
    let line = line.unwrap_or_else(|| panic!("not one line with `error:` but {error:?}"));
    assert!(!line.contains('\n'), "more than one line: {error:?}");
    line.to_owned()
}

/// Returns the value of a result line.
fn value<'a>(lines: &'a str, name: &str) -> &'a str {
    let mut lines = lines.lines().filter_map(|line| line.split_once(' '));
    let (_, value) = lines.find(|(found, _)| *found == name).expect("the line is there");
    value.trim()
}

/// Returns the variants of an application, and those that can be replayed.
fn variants_of(app: &str) -> (&'static [Variant], &'static [Variant]) {
    fn of<A: App>() -> (&'static [Variant], &'static [Variant]) {
        (A::VARIANTS, A::REPLAYED)
    }
    match app {
        Jacobi::NAME => of::<Jacobi>(),
        GaussSeidel::NAME => of::<GaussSeidel>(),
        Nbody::NAME => of::<Nbody>(),
        Matmul::NAME => of::<Matmul>(),
        MatmulG::NAME => of::<MatmulG>(),
        Histogram::NAME => of::<Histogram>(),
        Kmeans::NAME => of::<Kmeans>(),
        Mandelbrot::NAME => of::<Mandelbrot>(),
        _ => panic!("no application {app}"),
    }
}
