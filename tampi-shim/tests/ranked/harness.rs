//! Executes a case under `mpirun`, or is executed there.

use std::future::Future;
use std::io::Read;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use tampi_shim::mpi::{self, Library, Threads};
use tampi_shim::{Communicator, Error};

/// Longer than any case takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(180);

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

/// Tests that run a program on any number of ranks, with all threads and with one.
macro_rules! cases {
    ($($program:path),* $(,)?) => { &[$(
        $crate::harness::Case::new(
            stringify!($program),
            $crate::harness::ALL,
            || $crate::harness::run($program, tampi_shim::mpi::Threads::Multiple),
        ),
        $crate::harness::Case::new(
            concat!(stringify!($program), "_with_one_thread"),
            &[2],
            || $crate::harness::run($program, tampi_shim::mpi::Threads::Single),
        ),
    )*] };
}
pub(crate) use cases;

/// Runs a program on this rank and expects it to end well.
pub(crate) fn run<F>(program: impl FnOnce(Communicator) -> F, threads: Threads)
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    try_run(program, threads).unwrap_or_else(|error| panic!("{error}"));
}

/// Runs a program on this rank.
pub(crate) fn try_run<F>(
    program: impl FnOnce(Communicator) -> F,
    threads: Threads,
) -> Result<(), Error>
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let library = Library::initialize(threads)?;
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
    let mut arguments = Arguments::from_args();
    // Two programs at a time would compete for the cores that each of them wants for itself.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// A rank: one panic ends all of them.
fn run_here(case: &Case) -> ExitCode {
    match std::panic::catch_unwind(case.run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => std::process::abort(),
    }
}

fn launch(case: &Case, ranks: u32) -> Result<(), Failed> {
    let ours = std::env::current_exe()?;
    let mut child = Command::new(mpirun())
        .args(["-n", &ranks.to_string()])
        .arg(ours)
        .env(CASE, case.name)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_hwloc_base_binding_policy", "none")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        // The other component crashes in a swap of the own rank (Open MPI 4.1).
        .env("OMPI_MCA_osc", "^rdma")
        // MPICH over UCX loses puts with its registration cache.
        .env("UCX_RCACHE_ENABLE", "n")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}: {error}", mpirun()))?;
    let outputs = [read(child.stdout.take()), read(child.stderr.take())];
    let deadline = Instant::now() + TIMEOUT;
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if Instant::now() > deadline => {
                child.kill()?;
                child.wait()?;
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    if status.is_some_and(|status| status.success()) {
        return Ok(());
    }
    let ended = status.map_or_else(|| format!("not ended after {TIMEOUT:?}"), |s| s.to_string());
    let said = outputs.map(|output| output.join().unwrap_or_default()).concat();
    Err(format!("{ended}\n{said}").into())
}

fn read(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What could be read is all there is to show.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn mpirun() -> String {
    std::env::var("MPIRUN").unwrap_or_else(|_| {
        option_env!("MPICC").map_or("mpirun".to_owned(), |mpicc| mpicc.replace("mpicc", "mpirun"))
    })
}
