//! Executes a case under `mpirun`, or is executed there.

use std::future::Future;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use tampi_shim::mpi::{self, Library};
use tampi_shim::{Communicator, Error};

use crate::launcher;

/// Says to a process under `mpirun` which case it is to run.
const CASE: &str = "TAMPI_RANKED_CASE";

/// A test under its name, on each of these numbers of ranks.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) ranks: &'static [u32],
    pub(crate) run: fn(),
    /// Only on demand (`--ignored`): it takes gigabytes.
    pub(crate) huge: bool,
}

impl Case {
    pub(crate) const fn new(name: &'static str, ranks: &'static [u32], run: fn()) -> Self {
        Case { name, ranks, run, huge: false }
    }

    pub(crate) const fn huge(self) -> Self {
        Case { huge: true, ..self }
    }
}

/// The numbers of ranks of most cases.
pub(crate) const ALL: &[u32] = &[1, 2, 4];

/// Tests that run a program on any number of ranks.
macro_rules! cases {
    ($($program:path),* $(,)?) => { &[$(
        $crate::harness::Case::new(
            stringify!($program),
            $crate::harness::ALL,
            || $crate::harness::run($program),
        ),
    )*] };
}
pub(crate) use cases;

/// Runs a program on this rank and expects it to end well.
pub(crate) fn run<F>(program: impl FnOnce(Communicator) -> F)
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    try_run(program).unwrap_or_else(|error| panic!("{error}"));
}

/// Runs a program on this rank.
pub(crate) fn try_run<F>(program: impl FnOnce(Communicator) -> F) -> Result<(), Error>
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let library = Library::initialize()?;
    mpi::run(library, mpi::Config::from_environment()?, program)
}

pub(crate) fn main(cases: &[Case]) -> ExitCode {
    if let Ok(name) = std::env::var(CASE) {
        return match cases.iter().find(|case| case.name == name) {
            Some(case) => run_here(case),
            None => ExitCode::FAILURE,
        };
    }
    let trials = cases.iter().flat_map(|case| {
        case.ranks.iter().map(|&ranks| {
            let case = *case;
            let name = format!("{}::on_{ranks}", case.name);
            Trial::test(name, move || launch(&case, ranks)).with_ignored_flag(case.huge)
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

/// A rank: one panic ends all of them.
fn run_here(case: &Case) -> ExitCode {
    match std::panic::catch_unwind(case.run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => std::process::abort(),
    }
}

fn launch(case: &Case, ranks: u32) -> Result<(), Failed> {
    let output = launcher::run(ranks as usize, std::env::current_exe()?, |command| {
        // What windows of the MPIs of Debian want (`Window`).
        command.env("OMPI_MCA_osc", "^rdma").env("UCX_RCACHE_ENABLE", "n").env(CASE, case.name)
    })?;
    if output.status.success() { Ok(()) } else { Err(launcher::said(&output).into()) }
}
