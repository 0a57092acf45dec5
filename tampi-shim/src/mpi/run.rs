//! Running a program on the ranks that MPI has started, one in each process.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, mpsc};

use talpf_primitives::Mutex;
use talpf_runtime::{Group, IdlePolicy, Runtime, check_blocking};

use super::period::Pace;
use super::poller::Poller;
use super::transport::MpiTransport;
use super::{Library, PollingPeriod, Threads};
use crate::communicator::Communicator;
use crate::error::Error;
use crate::exec::{WORLD, run_one};
use crate::rank::{Rank, WorldRank};
use crate::transport::Transport;

/// The settings of [`run`].
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The runtime of this rank. Without one the ranks share the cores of their machine, and
    /// workers park at once if there are fewer cores than ranks.
    pub runtime: Option<talpf_runtime::Config>,
    /// Which threads are to call MPI, if it grants that: for [`Library::initialize`].
    pub threads: Threads,
    /// How often the requests under way are tested.
    pub polling: PollingPeriod,
}

impl Config {
    /// The environment variable that says which threads are to call MPI: `multiple` or `single`.
    pub const THREADS: &'static str = "TAMPI_THREADS";

    /// The defaults, and what [`PollingPeriod::VARIABLE`] and [`Config::THREADS`] say.
    ///
    /// **Errors**: a variable has a value that cannot be read.
    pub fn from_environment() -> Result<Self, Error> {
        let threads = match std::env::var(Self::THREADS).as_deref() {
            Err(std::env::VarError::NotPresent) | Ok("multiple") => Threads::Multiple,
            Ok("single") => Threads::Single,
            other => {
                let value = other.map_or_else(|error| error.to_string(), str::to_owned);
                let expected = "give `multiple` or `single`";
                return Err(Error::Setting { name: Self::THREADS, value, expected });
            }
        };
        let polling = PollingPeriod::from_environment()?;
        Ok(Config { runtime: None, threads, polling })
    }
}

/// Runs `main` as this process's rank of a program that `mpirun` has started, and returns what it
/// returned. To be called by the thread that has initialised `library`.
///
/// After `main` its tasks are waited for, and then the other ranks. If a rank fails, the
/// operations of the others end with [`Error::PeerFailed`].
///
/// **Errors**: settings out of range; whatever `main` returns; a task that panicked; what MPI
/// refuses.
///
/// ```no_run
/// use tampi_shim::mpi::{Config, Library, run};
/// use tampi_shim::{Error, operator::Sum};
///
/// let config = Config::from_environment()?;
/// let library = Library::initialize(config.threads)?;
/// let sum = run(library, config, async |world| {
///     world.allreduce(vec![world.rank().0], Sum).await
/// })?;
/// println!("{sum:?}");
/// # Ok::<(), Error>(())
/// ```
pub fn run<R, E, M, F>(library: Library, config: Config, main: M) -> Result<R, E>
where
    M: FnOnce(Communicator) -> F,
    F: Future<Output = Result<R, E>> + Send + 'static,
    R: Send + 'static,
    E: From<Error> + fmt::Display + Send + 'static,
{
    check_blocking("run").map_err(Error::from)?;
    let transport = MpiTransport::new(library).map_err(Error::from)?;
    let result = run_here(&transport, config, main);
    if let Err(error) = &result {
        transport.fail(&error.to_string());
    }
    let ended = transport.finish().map_err(Error::from);
    let value = result?;
    ended?;
    Ok(value)
}

fn run_here<R, E, M, F>(transport: &Arc<MpiTransport>, config: Config, main: M) -> Result<R, E>
where
    M: FnOnce(Communicator) -> F,
    F: Future<Output = Result<R, E>> + Send + 'static,
    R: Send + 'static,
    E: From<Error> + fmt::Display + Send + 'static,
{
    let library = &transport.library;
    let settings = config.runtime.unwrap_or_else(|| share_of(library));
    let crowded = settings.workers * library.local_size() as usize > library.cores();
    let pace = || Pace::new(config.polling, crowded);
    let runtime = Runtime::new(settings).map_err(Error::from)?;
    let rank = library.rank();
    let group = runtime.group(format!("rank {rank}"), rank);
    transport.listen().map_err(Error::from)?;
    let stopping = Stopping(transport);
    let poller = Poller::new(Arc::clone(transport), pace(), crowded);
    drop(group.spawn_service("poll", poller.poll(group.clone())).map_err(Error::from)?);
    let members = (0..library.size()).map(WorldRank).collect();
    let shared: Arc<dyn Transport> = Arc::clone(transport) as Arc<dyn Transport>;
    let world = Communicator::new(Arc::clone(&shared), group.clone(), WORLD, Rank(rank), members)?;
    let first = Arc::new(Mutex::new(None));
    let program = run_one(group.clone(), shared, main(world), Arc::clone(&first));
    let ended = wait_for(transport, &runtime, &group, program, pace());
    drop(stopping);
    let down = runtime.shut_down().map_err(Error::from);
    match (ended?, first.lock().take()) {
        (Some(value), _) => {
            down?;
            Ok(value)
        }
        (None, Some(error)) => Err(error),
        (None, None) => Err(E::from(Error::Abandoned)),
    }
}

/// Lets the polling task end, before the runtime that waits for it.
struct Stopping<'a>(&'a MpiTransport);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.sleeper.stop();
    }
}

/// Runs the program and waits until it and all its tasks have ended.
fn wait_for<R: Send + 'static>(
    transport: &Arc<MpiTransport>,
    runtime: &Runtime,
    group: &Group,
    program: impl Future<Output = Option<R>> + Send + 'static,
    mut pace: Pace,
) -> Result<Option<R>, Error> {
    let handle = group.spawn_main("main", program)?;
    let (told, hears) = mpsc::sync_channel(1);
    let (tasks, shared) = (group.clone(), Arc::clone(transport));
    let whole = async move {
        let ended = handle.await.map_err(Error::from);
        if let Err(error) = &ended {
            shared.fail(&error.to_string());
        }
        // Whether they fail is known already; they may still use the transport.
        let _ = tasks.wait().await;
        // The receiver waits for it.
        let _ = told.send(ended);
        shared.home.wake();
    };
    let whole = group.spawn_main("whole", whole)?;
    if transport.library.may_call_anywhere() {
        runtime.block_on(whole)??;
        return hears.try_recv().unwrap_or(Err(Error::Abandoned));
    }
    let mut ended = None;
    transport.serve(&mut pace, |_| {
        match hears.try_recv() {
            Ok(result) => ended = Some(result),
            Err(mpsc::TryRecvError::Empty) => {}
            Err(mpsc::TryRecvError::Disconnected) => ended = Some(Err(Error::Abandoned)),
        }
        ended.is_some()
    });
    ended.unwrap_or(Err(Error::Abandoned))
}

/// A runtime for one of the ranks that share a machine.
fn share_of(library: &Library) -> talpf_runtime::Config {
    let ranks = library.local_size() as usize;
    let workers = (library.cores() / ranks).clamp(1, talpf_runtime::cores());
    let mut settings = talpf_runtime::Config { workers, ..talpf_runtime::Config::default() };
    if workers * ranks > library.cores() {
        settings.idle = IdlePolicy::Park;
    }
    settings
}
