//! Runs a program on several ranks of one process.

use std::future::Future;
use std::sync::Arc;

use talpf_runtime::{Mains, Runtime, check_blocking};

use crate::communicator::Communicator;
use crate::config::Config;
use crate::control_plane;
use crate::error::Error;
use crate::protocols::Protocols;
use crate::rank::{Rank, WorldRank};
use crate::transport::{ContextId, Members, VerbsWorld};

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
    // Before workers exist, which would disturb the measurement. Virtual time is that of no machine.
    let is_virtual = config.runtime.virtual_time.is_some();
    let usual = || if is_virtual { Ok(Protocols::default()) } else { Protocols::measured() };
    let protocols = config.protocols.map_or_else(usual, Ok)?;
    let runtime = Runtime::new(config.runtime.clone()).map_err(Error::from)?;
    let groups = (0..config.ranks).map(|rank| {
        // Each set of workers gets its share of the ranks.
        let set = rank as usize * runtime.worker_sets() / config.ranks as usize;
        runtime.group_in(format!("rank {rank}"), rank, set)
    });
    let groups: Vec<_> = groups.collect();
    control_plane::begins(config.ranks, &protocols);
    let verbs = VerbsWorld::new(&config, protocols, groups.clone())?;
    runtime.add_event_source(verbs.link_events());
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
    let mut mains = Mains::new(|error| E::from(Error::from(error)));
    for world in worlds {
        let (group, transport) = (world.group().clone(), Arc::clone(world.transport()));
        let program = main.clone()(world);
        let fail = move |reason: &str| transport.fail(reason);
        mains.start(&group, program, fail).map_err(Error::from)?;
    }
    mains.wait(runtime)
}
