//! Overheads of the runtime and of communication on this machine.

use talpf::{Config, Context, SyncMode, exec};
use talpf_apps::Error;
use talpf_runtime::{Array, Clock, Runtime, cores};

use super::super::measure;

/// Tasks of a measurement.
const TASKS: usize = 20_000;
/// Puts of a measurement, each of eight bytes.
const PUTS: usize = 32;

/// Times of the runtime, each the median of several measurements.
///
/// **Units**: nanoseconds.
pub(super) struct Overheads {
    create_ns: f64,
    schedule_ns: f64,
    post_ns: f64,
    poll_ns: f64,
    sync_ns: f64,
    byte_ns: f64,
}

impl Overheads {
    /// Measures for about a second. If `quick`, not how long a put is under way, which takes long on
    /// busy cores.
    pub(super) fn measure(quick: bool) -> Result<Self, Error> {
        let settings = talpf::Settings::NONE;
        let put_ns = if quick { None } else { measure::put_ns(settings)? };
        let bsp = measure::bsp(settings)?;
        let (mut create, mut schedule) = (Vec::new(), Vec::new());
        for _ in 0..measure::REPETITIONS {
            let [created, scheduled] = tasks()?;
            create.push(created);
            schedule.push(scheduled);
        }
        let config = Config { ranks: 2, ..Config::default() };
        let mut post = exec(config, posts)?;
        let post_ns = post.swap_remove(0);
        Ok(Overheads {
            create_ns: measure::middle(create),
            schedule_ns: measure::middle(schedule),
            post_ns,
            poll_ns: put_ns.map_or(0.0, |put_ns| (put_ns - post_ns).max(0.0)),
            sync_ns: bsp.l_ns,
            byte_ns: bsp.g_ns.max(0.001),
        })
    }

    pub(super) fn text(&self) -> String {
        let Overheads { create_ns, schedule_ns, post_ns, poll_ns, sync_ns, byte_ns } = self;
        format!(
            "create        {create_ns:.0} ns a task\nschedule      {schedule_ns:.0} ns a task\n\
             post          {post_ns:.0} ns a put\npoll          {poll_ns:.0} ns until it is seen\n\
             sync          {sync_ns:.0} ns\nbyte          {byte_ns:.4} ns\n"
        )
    }

    /// Returns the text of a profile, to which costs can be added.
    pub(super) fn profile(&self) -> String {
        let Overheads { create_ns, schedule_ns, post_ns, poll_ns, sync_ns, byte_ns } = self;
        format!(
            "# This machine, by talpf calibrate. Measured: a task takes {create_ns:.0} ns to create and \
             {schedule_ns:.0} ns\n# to schedule and complete, a sync of two ranks {sync_ns:.0} ns.\n\
             [link]\nsend_overhead = \"{post_ns:.0}ns\"\nlatency = \"{poll_ns:.0}ns\"\n\
             bandwidth = \"{:.3}GB/s\"\n\n[machine]\ncores = {}\ntask_overhead = \"{:.0}ns\"\n\n[costs]\n",
            1.0 / byte_ns,
            cores().min(1024),
            create_ns + schedule_ns
        )
    }
}

/// Measures, on one worker, how long it takes to create a task, and to schedule and complete it.
fn tasks() -> Result<[f64; 2], Error> {
    let config = talpf_runtime::Config { workers: 1, ..talpf_runtime::Config::default() };
    let runtime = Runtime::new(config)?;
    let group = runtime.group("calibrate", 0);
    let array = Array::new(&group, vec![0_u8; 64 * TASKS], 64)?;
    let clock = Clock::start();
    let (hold, held) = std::sync::mpsc::channel::<()>();
    // Keeps the worker, so that tasks are created alone.
    group.task("hold").inout(&array.all()).spawn(move |_all| {
        let _ = held.recv();
    })?;
    let start = clock.now_ns();
    for tile in 0..TASKS {
        group.task("empty").unthrottled().inout(&array.tile(tile)).spawn(|_tile| {})?;
    }
    let created = clock.now_ns();
    drop(hold);
    group.wait_blocking()?;
    let ended = clock.now_ns();
    runtime.shut_down()?;
    Ok([created - start, ended - created].map(|time_ns| time_ns as f64 / TASKS as f64))
}

/// Measures how long a put of eight bytes takes its caller.
async fn posts(ctx: Context) -> Result<f64, Error> {
    let inbox = Array::new(ctx.group(), vec![0_u64; PUTS], PUTS)?;
    let mine = Array::new(ctx.group(), vec![0_u64; PUTS], PUTS)?;
    let slot = ctx.register_global(&inbox).await?;
    let other = ctx.peer(1 - ctx.rank().0)?;
    let mut samples = Vec::with_capacity(measure::REPETITIONS);
    for _ in 0..measure::REPETITIONS {
        let start = ctx.group().clock().now_ns();
        for at in 0..PUTS {
            ctx.put(&mine.region(at..at + 1), slot.at(other, at))?;
        }
        samples.push((ctx.group().clock().now_ns() - start) as f64 / PUTS as f64);
        ctx.sync(SyncMode::msg(PUTS as u32)).window(&inbox.all()).await?;
    }
    Ok(measure::middle(samples))
}
