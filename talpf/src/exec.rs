//! Running a program on several ranks of this process.

use std::future::Future;
use std::iter::repeat_n;
use std::ops::Range;
use std::sync::Arc;

use ibverbs_sim::Device;
use talpf_runtime::{EventSource, Group, Mains, Runtime, check_blocking};

use crate::config::Config;
use crate::context::Context;
use crate::error::Error;
use crate::numbers::Rank;
use crate::polling;
use crate::world::World;

/// Runs `main` on every rank, all in this process and on one pool of workers, and returns what
/// each rank returned, by rank.
///
/// `main` is an async closure or function. Each rank runs a clone of it on the workers, so it is
/// `move`, what it captures is `Clone`, and large things are shared by an [`Arc`]. Its `?` takes
/// errors of this crate, of the runtime, and whatever else its error type is made from:
///
/// ```
/// use std::sync::Arc;
/// use talpf::{Config, exec};
/// use talpf_runtime::Array;
///
/// let table = Arc::new(vec![1.0f64; 1 << 20]); // Shared by all ranks.
/// let scale = vec![2.0, 3.0]; // Each rank gets its own.
/// let config = Config { ranks: 2, ..Config::default() };
/// let scaled = exec(config, async move |ctx| {
///     let factor = scale[ctx.rank().0 as usize];
///     let part = Array::new(ctx.group(), table[..16].to_vec(), 16)?;
///     let task = ctx.group().task("scale").inout(&part.all());
///     let sum = task.run(move |mut part| {
///         part.iter_mut().for_each(|value| *value *= factor);
///         part.iter().sum::<f64>()
///     })?;
///     Ok::<_, talpf::Error>(sum.await?)
/// })?;
/// assert_eq!(scaled, [32.0, 48.0]);
/// # Ok::<(), talpf::Error>(())
/// ```
///
/// Without `move` the closure would borrow what it captures, and the ranks may not: "`scale` does
/// not live long enough, argument requires that `scale` is borrowed for `'static`". What is not
/// `Clone` goes into an [`Arc`] (else "the trait `Clone` is not implemented for ..., within this
/// closure"), and results are returned instead of written to what was captured ("the trait `Clone`
/// is not implemented for `&mut ...`").
///
/// ```compile_fail,E0597
/// # use talpf::{Config, exec};
/// let scale = vec![2.0, 3.0];
/// exec(Config::default(), async |ctx| { // `async move |ctx|` compiles.
///     Ok::<f64, talpf::Error>(scale[ctx.rank().0 as usize])
/// })?;
/// # Ok::<(), talpf::Error>(())
/// ```
///
/// ```compile_fail,E0277
/// # use talpf::{Config, exec};
/// let mut sum = 0;
/// exec(Config::default(), async |ctx| { // Returns it, and the caller adds up what `exec` returns.
///     sum += ctx.rank().0;
///     Ok::<(), talpf::Error>(())
/// })?;
/// # Ok::<(), talpf::Error>(())
/// ```
///
/// After a rank's `main` its tasks are waited for. If a rank fails, the others' syncs end with
/// [`Error::PeerFailed`] and `exec` returns the failure that came first.
///
/// **Errors**: called from a task; settings out of range; whatever `main` returns; a task that
/// panicked; a hang; a sync that was dropped, or a round with operations that none has closed.
/// **Source**: `lpf_exec` of the thesis, chapter 2.3.1.
///
/// ```
/// use talpf::{Config, SyncMode, exec};
/// use talpf_runtime::Array;
///
/// let sums = exec(Config { ranks: 3, ..Config::default() }, async |ctx| {
///     let mine = Array::new(ctx.group(), vec![ctx.rank().0; 1], 1)?;
///     let all = Array::new(ctx.group(), vec![0u32; 3], 3)?;
///     let slot = ctx.register_global(&all).await?;
///     for rank in 0..3 {
///         ctx.put(&mine.all(), slot.at(rank, ctx.rank().0 as usize))?;
///     }
///     ctx.sync(SyncMode::DEFAULT).window(&all.all()).await?;
///     let sum = ctx.group().task("sum").input(&all.all()).run(|all| all.iter().sum::<u32>())?;
///     Ok::<_, talpf::Error>(sum.await?)
/// })?;
/// assert_eq!(sums, [3, 3, 3]);
/// # Ok::<(), talpf::Error>(())
/// ```
pub fn exec<R, E, M, F>(config: Config, main: M) -> Result<Vec<R>, E>
where
    M: FnOnce(Context) -> F + Clone,
    F: Future<Output = Result<R, E>> + Send + 'static,
    R: Send + 'static,
    E: From<Error> + std::fmt::Display + Send + 'static,
{
    check_blocking("exec").map_err(Error::from)?;
    let ranks = config.ranks as usize;
    let (runtime, world) = start(config)?;
    run(runtime, world, repeat_n(main, ranks))
}

/// Runs one of `mains` on each rank of `world` in this process, ends the runtime, and returns their
/// results.
pub(crate) fn run<R, E, M, F>(
    runtime: Runtime,
    world: Arc<World>,
    mains: impl Iterator<Item = M>,
) -> Result<Vec<R>, E>
where
    M: FnOnce(Context) -> F,
    F: Future<Output = Result<R, E>> + Send + 'static,
    R: Send + 'static,
    E: From<Error> + std::fmt::Display + Send + 'static,
{
    for receiver in world.ranks() {
        let poll = polling::poll(receiver, &world.config);
        drop(receiver.sender.group.spawn_service("poll", poll).map_err(Error::from)?);
    }
    let stopping = Stopping(&world);
    let result = run_all(&runtime, &world, mains);
    if let Err(error) = &result {
        world.fail_with_reason(world.first(), &error.to_string());
    }
    let left = leave(&runtime, &world);
    let result = result.and_then(|results| left.map(|()| results).map_err(E::from));
    drop(stopping);
    let ended = runtime.shut_down().map_err(Error::from);
    world.clear();
    let results = result?;
    ended?;
    Ok(results)
}

fn start(config: Config) -> Result<(Runtime, Arc<World>), Error> {
    config.check()?;
    let runtime = Runtime::new(config.runtime.clone())?;
    let device = Device::new(config.device.clone())?;
    runtime.add_event_source(Arc::new(LinkEvents(device.clone())));
    let groups: Vec<Group> = groups(&runtime, 0..config.ranks).collect();
    if let (true, Some(first)) = (config.has_link_in_real_time(), groups.first()) {
        let clock = first.clock().clone();
        device.set_link_clock(move || clock.now_ns());
    }
    let world = World::of_groups(&device, config, groups.into_iter())?;
    Ok((runtime, world))
}

/// Iterates over new groups of consecutive ranks, each of which has a worker to itself or shares it with
/// as many others, if that is possible. Of several sets of workers each gets its share of the ranks.
pub(crate) fn groups(runtime: &Runtime, ranks: Range<u32>) -> impl Iterator<Item = Group> {
    let (workers, sets, count) = (runtime.workers(), runtime.worker_sets(), ranks.len());
    ranks.enumerate().map(move |(index, rank)| {
        let name = Rank(rank).to_string();
        // Otherwise some workers would have more ranks than others.
        match count.is_multiple_of(workers) {
            true => runtime.group_at(name, rank, index * workers / count),
            false => runtime.group_in(name, rank, index * sets / count),
        }
    })
}

/// The link of a device, as the executor of virtual time moves it.
struct LinkEvents(Device);

impl EventSource for LinkEvents {
    fn next_ns(&self) -> Option<u64> {
        self.0.next_on_link_ns()
    }

    fn advance(&self, now_ns: u64) {
        self.0.advance_link(now_ns);
    }
}

fn run_all<R, E, M, F>(
    runtime: &Runtime,
    world: &Arc<World>,
    mains: impl Iterator<Item = M>,
) -> Result<Vec<R>, E>
where
    M: FnOnce(Context) -> F,
    F: Future<Output = Result<R, E>> + Send + 'static,
    R: Send + 'static,
    E: From<Error> + std::fmt::Display + Send + 'static,
{
    let reporter = Arc::downgrade(world);
    let _report = runtime.on_hang(move |text| {
        if let Some(world) = reporter.upgrade() {
            let ranks = world.ranks().iter().map(|receiver| receiver.rank());
            ranks.for_each(|rank| world.report_hang(rank, text));
        }
    });
    let mut running = Mains::new(|error| E::from(Error::from(error)));
    for (receiver, main) in world.ranks().iter().zip(mains) {
        let rank = receiver.rank();
        let program = run_one(Arc::clone(world), rank, main(Context::new(world, rank)));
        let failing = Arc::clone(world);
        let fail = move |reason: &str| failing.fail_with_reason(rank, reason);
        running.start(&receiver.sender.group, program, fail).map_err(Error::from)?;
    }
    let results = running.wait(runtime)?;
    // Every main has returned without an error, and may not have awaited all its syncs.
    world.check_end()?;
    Ok(results)
}

/// Runs one rank's program once the processes have met.
async fn run_one<R, E: From<Error>>(
    world: Arc<World>,
    rank: Rank,
    program: impl Future<Output = Result<R, E>>,
) -> Result<R, E> {
    if let Some(processes) = world.processes() {
        processes.handshake(&world, rank).await?;
    }
    let value = program.await?;
    world.names.end(rank);
    world.rank(rank).sender.open_rounds.check_channels()?;
    Ok(value)
}

/// Waits until the ranks of other processes have finished, too.
fn leave(runtime: &Runtime, world: &Arc<World>) -> Result<(), Error> {
    let Some(processes) = world.processes().cloned() else {
        return Ok(());
    };
    let group = &world.rank(world.first()).sender.group;
    let (finishing, finished) = (Arc::clone(world), Arc::clone(&processes));
    let left = async move { finished.finish(finishing.ranks()).await };
    let left = group.spawn_main("finish", left).and_then(|handle| runtime.block_on(handle)?);
    if let Err(talpf_runtime::Error::Hang(_)) = left {
        processes.finish_hung(group.clock());
    }
    left?
}

/// Ends the polling tasks when dropped, and the programs with an error if `exec` unwinds.
struct Stopping<'a>(&'a World);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail_with_reason(self.0.first(), "a main panicked before it began");
        }
        for receiver in self.0.ranks() {
            receiver.stop_polling();
        }
    }
}
