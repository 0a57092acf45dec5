//! Runs a program on the ranks that MPI has started, one in each process.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use talpf_runtime::service::serve;
use talpf_runtime::{IdlePolicy, Mains, Runtime, check_blocking};

use super::clocks::TracedClock;
use super::poller::Poller;
use super::transport::MpiTransport;
use super::{Library, PollingPeriod};
use crate::communicator::Communicator;
use crate::control_plane;
use crate::error::Error;
use crate::exec::WORLD;
use crate::rank::{Rank, WorldRank};
use crate::transport::Transport;

/// The settings of [`run`].
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Settings of the runtime of this rank. By default the ranks share the cores of their machine,
    /// and idle workers park at once if there are fewer cores than ranks.
    pub runtime: Option<talpf_runtime::Config>,
    /// Period of testing the requests under way.
    pub polling: PollingPeriod,
}

impl Config {
    /// Returns the defaults, changed by the environment variable [`PollingPeriod::VARIABLE`].
    ///
    /// **Errors**: the variable has a value that cannot be read.
    pub fn from_environment() -> Result<Self, Error> {
        Ok(Config { runtime: None, polling: PollingPeriod::from_environment()? })
    }
}

/// Runs `main` as the rank of this process in a program that `mpirun` has started, and returns its
/// result. To be called by the thread that has initialised `library`.
///
/// `run` waits for all tasks after `main`, and then for the other ranks. If a rank fails, the
/// operations of the others end with [`Error::PeerFailed`].
///
/// **Errors**: settings out of range; an error of `main`; a task that panicked; an error of MPI.
///
/// ```no_run
/// use tampi_shim::mpi::{Config, Library, run};
/// use tampi_shim::{Error, operator::Sum};
///
/// let config = Config::from_environment()?;
/// let library = Library::initialize()?;
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
    let settings = config.runtime.unwrap_or_else(|| default_runtime(library));
    let is_oversubscribed = settings.workers * library.local_size() as usize > library.cores();
    let (recorder, workers) = (settings.recorder.clone(), settings.workers);
    let runtime = Runtime::new(settings).map_err(Error::from)?;
    let rank = library.rank();
    let version = || library.version().unwrap_or_default().trim().to_owned();
    control_plane::begins_over_mpi(rank, library.size(), &config.polling, version);
    let group = runtime.group(format!("rank {rank}"), rank);
    let clock = TracedClock::begin(library, recorder.as_ref(), group.clock(), workers);
    if let Some(clock) = clock.map_err(Error::from)? {
        // The transport is of this run alone.
        let _ = transport.clock.set(clock);
    }
    transport.receive_failures().map_err(Error::from)?;
    let stopping = Stopping(transport);
    let poller = Poller::new(transport, is_oversubscribed);
    let polling = serve(group.clone(), poller, config.polling.pace());
    drop(group.spawn_service("poll", polling).map_err(Error::from)?);
    let members = (0..library.size()).map(WorldRank).collect();
    let shared: Arc<dyn Transport> = Arc::clone(transport) as Arc<dyn Transport>;
    let world = Communicator::new(Arc::clone(&shared), group.clone(), WORLD, Rank(rank), members)?;
    let mut mains = Mains::new(|error| E::from(Error::from(error)));
    let fail = move |reason: &str| shared.fail(reason);
    mains.start(&group, main(world), fail).map_err(Error::from)?;
    let results = mains.wait(&runtime);
    drop(stopping);
    let down = runtime.shut_down().map_err(Error::from);
    let mut results = results?;
    down?;
    // One main, one result.
    results.pop().ok_or_else(|| E::from(Error::Abandoned))
}

/// Guard that ends the polling task, before the runtime that waits for it.
struct Stopping<'a>(&'a MpiTransport);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.stop_polling();
    }
}

/// Returns settings of the runtime of one of the ranks that share a machine.
fn default_runtime(library: &Library) -> talpf_runtime::Config {
    let ranks = library.local_size() as usize;
    let workers = (library.cores() / ranks).clamp(1, talpf_runtime::cores());
    let mut settings = talpf_runtime::Config { workers, ..talpf_runtime::Config::default() };
    if workers * ranks > library.cores() {
        settings.idle = IdlePolicy::Park;
    }
    settings
}
