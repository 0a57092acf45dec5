//! Running a program in several processes, on one rank of each or on several.

use std::future::Future;
use std::iter::repeat_n;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ibverbs_sim::{Device, Packets, Rail, Wire};
use talpf_runtime::{Clock, Runtime, check_blocking};

use crate::config::{Config, Progress};
use crate::context::Context;
use crate::endpoint::{Endpoint, INLINE_BYTES_BETWEEN_PROCESSES};
use crate::error::Error;
use crate::exec;
use crate::processes::{CatchingWire, Distribution, ProgressThread, Remotes, Segments};
use crate::world::World;

/// Runs `main` as one rank of a run, whose other ranks are in the other processes of the wire: each
/// calls this, with the same settings. Returns what `main` returned here, once all ranks are done.
///
/// The wire determines the number of the rank and of all ranks; [`Config::ranks`] is ignored.
/// `main` is `async move` and owns its captures, as that of [`exec`](crate::exec()), but need not be
/// `Clone`. Programs are those of `exec`, with these differences:
/// - a put of up to 4 KiB to consecutive elements travels with its claim; any other operation on a
///   window sends a window request to the target first, which costs a round trip more, unless it is a put
///   that repeats those of earlier rounds;
/// - when a rank fails, the others return an error, too, which is [`Error::PeerFailed`]
///   unless they have one of their own; which of several failures they name is not determined;
/// - a sync that waits for a rank whose program has ended fails with [`Error::PeerFailed`], which
///   names that rank;
/// - a hang is one of all processes together, and is found after one and a half times as long; each
///   process reports what its own rank waits for;
/// - the recorder of each process writes a trace of its own, with the rank of the process in its name and
///   the objects of all; `talpf_traces::paraver::merge` joins them. All processes have a recorder, or none.
///
/// **Errors**: as [`exec`](crate::exec()); processes with other settings; a process that has ended,
/// or cannot be understood.
/// **Source**: `lpf_hook` of the thesis, chapter 2.3.1.
///
/// ```
/// use std::sync::Arc;
/// use ibverbs_sim::SocketWire;
/// use talpf::{Config, SyncMode, hook};
/// use talpf_runtime::Array;
///
/// // Threads stand for the processes.
/// let wires = SocketWire::mesh(2)?;
/// let program = |wire| {
///     let mut config = Config::default();
///     config.runtime.workers = 1;
///     hook(Arc::new(wire), config, async move |ctx| {
///         let mine = Array::new(ctx.group(), vec![ctx.rank().0 + 1; 1], 1)?;
///         let inbox = Array::new(ctx.group(), vec![0u32; 1], 1)?;
///         let slot = ctx.register_global(&inbox).await?;
///         ctx.put(&mine.all(), slot.at(1 - ctx.rank().0, 0))?;
///         ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
///         let read = ctx.group().task("read").input(&inbox.all()).run(|inbox| inbox[0])?;
///         Ok::<_, talpf::Error>(read.await?)
///     })
/// };
/// let spawn = |wire| std::thread::spawn(move || program(wire));
/// let threads: Vec<_> = wires.into_iter().map(spawn).collect();
/// let join = |thread: std::thread::JoinHandle<_>| thread.join().expect("the program ends");
/// let results = threads.into_iter().map(join).collect::<Result<Vec<u32>, _>>()?;
/// assert_eq!(results, [2, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn hook<R, E, M, F>(wire: Arc<dyn Wire>, config: Config, main: M) -> Result<R, E>
where
    M: FnOnce(Context) -> F,
    F: Future<Output = Result<R, E>> + Send + 'static,
    R: Send + 'static,
    E: From<Error> + std::fmt::Display + Send + 'static,
{
    let wire = Arc::new(CatchingWire::new(wire));
    let rail = Arc::new(Packets::new(Arc::clone(&wire) as _));
    run(rail, Some(wire), config, main)
}

/// As [`hook`], over a rail: for processes of one machine, [`ibverbs_sim::ShmRail`] is much faster
/// than any wire.
///
/// **Errors**: as [`hook`].
pub fn hook_on_rail<R, E, M, F>(rail: Arc<dyn Rail>, config: Config, main: M) -> Result<R, E>
where
    M: FnOnce(Context) -> F,
    F: Future<Output = Result<R, E>> + Send + 'static,
    R: Send + 'static,
    E: From<Error> + std::fmt::Display + Send + 'static,
{
    run(rail, None, config, main)
}

/// Runs `main` on several ranks of this process, [`Config::ranks`] of them, in a run whose other ranks
/// are in the other processes of the rail: each calls this, with the same settings. Returns what each
/// rank of this process returned, by rank, once all ranks are done.
///
/// The ranks of process `p` are those from `p * config.ranks` on. Between ranks of one process
/// programs are as with [`exec`](crate::exec()), between others as with [`hook`].
///
/// A wire, as that of MPI, becomes a rail by [`ibverbs_sim::Packets`].
///
/// **Errors**: as [`hook`].
pub fn exec_on_rail<R, E, M, F>(rail: Arc<dyn Rail>, config: Config, main: M) -> Result<Vec<R>, E>
where
    M: FnOnce(Context) -> F + Clone,
    F: Future<Output = Result<R, E>> + Send + 'static,
    R: Send + 'static,
    E: From<Error> + std::fmt::Display + Send + 'static,
{
    let each = config.ranks;
    run_all(rail, None, config, each, repeat_n(main, each as usize))
}

fn run<R, E, M, F>(
    rail: Arc<dyn Rail>,
    wire: Option<Arc<CatchingWire>>,
    config: Config,
    main: M,
) -> Result<R, E>
where
    M: FnOnce(Context) -> F,
    F: Future<Output = Result<R, E>> + Send + 'static,
    R: Send + 'static,
    E: From<Error> + std::fmt::Display + Send + 'static,
{
    let mut results = run_all(rail, wire, config, 1, std::iter::once(main))?;
    // One rank, one result.
    results.pop().ok_or_else(|| E::from(Error::Runtime(talpf_runtime::Error::ShutDown)))
}

/// Runs one of `mains` on each of the `each` ranks of this process.
fn run_all<R, E, M, F>(
    rail: Arc<dyn Rail>,
    wire: Option<Arc<CatchingWire>>,
    mut config: Config,
    each: u32,
    mains: impl Iterator<Item = M>,
) -> Result<Vec<R>, E>
where
    M: FnOnce(Context) -> F,
    F: Future<Output = Result<R, E>> + Send + 'static,
    R: Send + 'static,
    E: From<Error> + std::fmt::Display + Send + 'static,
{
    check_blocking("hook").map_err(Error::from)?;
    let distribution = Distribution::new(rail.process(), rail.processes(), each);
    config.ranks = each.saturating_mul(rail.processes());
    config.check()?;
    if config.device.link.is_some() {
        return Err(Error::HasLinkModel { call: "hook" }.into());
    }
    if rail.limits().is_mapped && config.runtime.memory.is_none() {
        config.runtime.memory = Some(Arc::new(Segments(Arc::clone(&rail))));
    }
    let event = match config.progress {
        Progress::Workers => None,
        Progress::Thread if rail.limits().has_event => Some(ProgressThread::event()?),
        Progress::Thread => return Err(Error::NoEvent.into()),
    };
    let runtime = Runtime::new(config.runtime.clone()).map_err(Error::from)?;
    let world = meet(&runtime, rail, (distribution, wire, event.clone()), config)?;
    let thread = world
        .processes()
        .zip(event)
        .map(|(processes, event)| ProgressThread::start(Arc::clone(processes), event));
    let thread = thread.transpose().inspect_err(|_| world.clear())?;
    let judge = Arc::downgrade(&world);
    runtime.judge_hangs(move || {
        let world = judge.upgrade();
        world.is_some_and(|world| world.processes().is_some_and(|others| others.is_terminated()))
    });
    let results = exec::run(runtime, world, mains);
    // The thread serves the others until all have left.
    drop(thread);
    results
}

fn meet(
    runtime: &Runtime,
    rail: Arc<dyn Rail>,
    (distribution, wire, thread): (Distribution, Option<Arc<CatchingWire>>, Option<Arc<OwnedFd>>),
    config: Config,
) -> Result<Arc<World>, Error> {
    let mut device = config.device.clone();
    let inline = &mut device.attributes.max_inline_data;
    *inline = INLINE_BYTES_BETWEEN_PROCESSES.max(*inline);
    let device = Device::with_rail(device, rail).map_err(Error::from)?;
    let endpoints = Endpoint::of_process(&device, distribution.here(), config.ranks)?;
    let ranks: Vec<_> = exec::groups(runtime, distribution.here()).zip(endpoints).collect();
    let clock = ranks.first().map_or_else(Clock::start, |(group, _)| group.clock().clone());
    let attention = Arc::default();
    let remotes = Remotes { device, distribution, wire, clock, thread, attention };
    Ok(World::new(config, ranks, Some(remotes)))
}
