//! Runs a program on several ranks of one process.

use std::future::Future;
use std::sync::Arc;

use talpf_primitives::Mutex;
use talpf_runtime::{Group, Runtime, check_blocking};

use crate::communicator::Communicator;
use crate::config::Config;
use crate::error::Error;
use crate::protocols::Protocols;
use crate::rank::{Rank, WorldRank};
use crate::transport::{ContextId, Members, Transport, VerbsWorld};

/// Context of the world's point-to-point messages. The next context is that of its collectives.
pub(crate) const WORLD: ContextId = ContextId(0);

/// Runs `main` on every rank, all in this process and on one pool of workers, and returns the
/// results by rank.
///
/// Each rank runs a clone of `main`, an async closure or function: `async move`, with captures that
/// are `Clone` or shared by an [`Arc`].
///
/// `exec` waits for all tasks of a rank after its `main`. If a rank fails, the operations of the
/// others end with [`Error::PeerFailed`] and `exec` returns the first failure.
///
/// **Errors**: called from a task; settings out of range; an error of `main`; a task that panicked;
/// a hang.
///
/// ```
/// use tampi_shim::{Config, Rank, Tag, exec};
///
/// let values = vec![1, 2];
/// let sums = exec(Config { ranks: 2, ..Config::default() }, async move |world| {
///     let other = Rank(1 - world.rank().0);
///     let mine = vec![values[world.rank().0 as usize]];
///     let (mine, theirs, _) =
///         world.sendrecv((mine, other, Tag(0)), (vec![0u32], other, Tag(0))).await?;
///     Ok::<_, tampi_shim::Error>(mine[0] + theirs[0])
/// })?;
/// assert_eq!(sums, [3, 3]);
/// # Ok::<(), tampi_shim::Error>(())
/// ```
pub fn exec<R, E, M, F>(config: Config, main: M) -> Result<Vec<R>, E>
where
    M: FnOnce(Communicator) -> F + Clone,
    F: Future<Output = Result<R, E>> + Send + 'static,
    R: Send + 'static,
    E: From<Error> + std::fmt::Display + Send + 'static,
{
    check_blocking("exec").map_err(Error::from)?;
    config.check()?;
    // Before workers exist, which would disturb the measurement.
    let protocols = config.protocols.map_or_else(Protocols::measured, Ok)?;
    let runtime = Runtime::new(config.runtime.clone()).map_err(Error::from)?;
    let groups = (0..config.ranks).map(|rank| runtime.group(format!("rank {rank}"), rank));
    let groups: Vec<_> = groups.collect();
    let verbs = VerbsWorld::new(&config, protocols, groups.clone())?;
    let members: Members = (0..config.ranks).map(WorldRank).collect();
    let worlds = verbs.ranks().zip(groups).enumerate().map(|(rank, (transport, group))| {
        Communicator::new(transport, group, WORLD, Rank(rank as u32), Arc::clone(&members))
    });
    let result = worlds
        .collect::<Result<Vec<_>, Error>>()
        .map_err(E::from)
        .and_then(|worlds| run_all(&runtime, worlds, main));
    if let (Err(error), Some(transport)) = (&result, verbs.ranks().next()) {
        transport.fail(&error.to_string());
    }
    verbs.stop();
    let ended = runtime.shut_down().map_err(Error::from);
    verbs.clear();
    let results = result?;
    ended?;
    Ok(results)
}

fn run_all<R, E, M, F>(runtime: &Runtime, worlds: Vec<Communicator>, main: M) -> Result<Vec<R>, E>
where
    M: FnOnce(Communicator) -> F + Clone,
    F: Future<Output = Result<R, E>> + Send + 'static,
    R: Send + 'static,
    E: From<Error> + std::fmt::Display + Send + 'static,
{
    let first = Arc::new(Mutex::new(None));
    let mut handles = Vec::new();
    for world in worlds {
        let (group, transport) = (world.group().clone(), Arc::clone(world.transport()));
        let program =
            run_one(group.clone(), Arc::clone(&transport), main.clone()(world), Arc::clone(&first));
        handles.push((transport, group.spawn_main("main", program).map_err(Error::from)?));
    }
    let mut results = Vec::new();
    let mut broken = None;
    for (transport, handle) in handles {
        match runtime.block_on(handle) {
            Ok(Ok(value)) => results.extend(value),
            Ok(Err(error)) | Err(error) => {
                transport.fail(&error.to_string());
                broken.get_or_insert(error);
            }
        }
    }
    // A panic is the cause of the errors that the other ranks report.
    match (broken, first.lock().take()) {
        (Some(error), _) => Err(E::from(Error::from(error))),
        (None, Some(error)) => Err(error),
        (None, None) => Ok(results),
    }
}

/// Fails the operations of all ranks when the tasks of a rank are cancelled.
fn end_with_group(group: &Group, transport: &Arc<dyn Transport>) {
    let transport = Arc::downgrade(transport);
    group.on_cancel(move |reason| {
        if let Some(transport) = transport.upgrade() {
            transport.fail(&format!("its tasks were cancelled: {reason}"));
        }
    });
}

/// Runs one rank's program and waits for the tasks it leaves. The first error of all ranks goes to
/// `first`.
pub(crate) async fn run_one<R, E: From<Error> + std::fmt::Display>(
    group: Group,
    transport: Arc<dyn Transport>,
    program: impl Future<Output = Result<R, E>>,
    first: Arc<Mutex<Option<E>>>,
) -> Option<R> {
    end_with_group(&group, &transport);
    let guard = PanicGuard(&*transport);
    let result = program.await;
    std::mem::forget(guard);
    let error = match result {
        Ok(value) => match group.wait().await {
            Ok(()) => return Some(value),
            Err(error) => E::from(Error::from(error)),
        },
        Err(error) => error,
    };
    let reason = error.to_string();
    first.lock().get_or_insert(error);
    transport.fail(&reason);
    // Tasks under way may still use the transport.
    let _ = group.wait().await;
    None
}

/// Fails the other ranks if the program of this rank panics.
struct PanicGuard<'a>(&'a dyn Transport);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        self.0.fail("its main panicked");
    }
}
