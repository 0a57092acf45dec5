//! Running a program on several ranks of this process.

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

/// The context of the world's point-to-point messages; the next one is that of its collectives.
pub(crate) const WORLD: ContextId = ContextId(0);

/// Runs `main` on every rank, all in this process and on one pool of workers, and returns what
/// each rank returned.
///
/// Each rank runs a clone of `main`, an async closure or function: it is `async move` and what it
/// captures is `Clone`, or shared by an [`Arc`].
///
/// After a rank's `main` its tasks are waited for. If a rank fails, the operations of the others
/// end with [`Error::PeerFailed`] and `exec` returns the failure that came first.
///
/// **Errors**: called from a task; settings out of range; whatever `main` returns; a task that
/// panicked; a hang.
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
    // Before there are workers to disturb what it measures.
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
    // A panic is the cause of what the others report.
    match (broken, first.lock().take()) {
        (Some(error), _) => Err(E::from(Error::from(error))),
        (None, Some(error)) => Err(error),
        (None, None) => Ok(results),
    }
}

/// Ends the operations of all ranks when the tasks of a rank are cancelled.
fn end_with_group(group: &Group, transport: &Arc<dyn Transport>) {
    let transport = Arc::downgrade(transport);
    group.on_cancel(move |reason| {
        if let Some(transport) = transport.upgrade() {
            transport.fail(&format!("its tasks were cancelled: {reason}"));
        }
    });
}

/// One rank's program and the tasks it leaves. The first error of all ranks goes to `first`.
pub(crate) async fn run_one<R, E: From<Error> + std::fmt::Display>(
    group: Group,
    transport: Arc<dyn Transport>,
    program: impl Future<Output = Result<R, E>>,
    first: Arc<Mutex<Option<E>>>,
) -> Option<R> {
    end_with_group(&group, &transport);
    let leaving = Leaving(&*transport);
    let result = program.await;
    std::mem::forget(leaving);
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
    // Tasks that are under way may still use the transport.
    let _ = group.wait().await;
    None
}

/// Tells the other ranks if the program of this one panics.
struct Leaving<'a>(&'a dyn Transport);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.fail("its main panicked");
    }
}
