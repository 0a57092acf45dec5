//! Supersteps and puts of two ranks, each in a process of its own, or both in one.

use std::sync::Arc;
use std::time::Instant;

use ibverbs_sim::Rail;
use talpf::{Config, Context, MemorySlot, Rank, SyncMode, exec, hook_on_rail};
use talpf_runtime::Array;

use super::{IN_SUPERSTEPS, IN_SUPERSTEPS_NAMES, LONG, LONG_NAMES};
use crate::error::Error;

/// Numbers that a window takes.
const NUMBERS: usize = 64;
/// Numbers of a window for long puts.
const PLACES: usize = 1 << 21;

/// Figures of a program.
#[derive(Default)]
pub(super) struct Figures {
    /// Time of a superstep in which both ranks put 8 bytes into a window, with a known count.
    pub(super) superstep_us: f64,
    /// Times of such supersteps with puts of each of the [`IN_SUPERSTEPS`] sizes, of an array.
    pub(super) supersteps_us: [f64; IN_SUPERSTEPS.len()],
    /// Rate of puts of 8 bytes from the body of one task.
    pub(super) puts_m_s: f64,
    /// Time of an addition to a number in a window, until its result is here.
    pub(super) fetch_add_us: f64,
    /// Rates of puts of each of the [`LONG`] sizes, a task each.
    pub(super) puts_gb_s: [f64; LONG.len()],
    /// Rates of gets of the same sizes.
    pub(super) gets_gb_s: [f64; LONG.len()],
}

impl Figures {
    /// Passes the name, the unit and the value of each figure to `action`.
    pub(super) fn for_each(&self, mut action: impl FnMut(String, &'static str, f64)) {
        action("superstep_us".into(), "us", self.superstep_us);
        for (name, us) in IN_SUPERSTEPS_NAMES.into_iter().zip(self.supersteps_us) {
            action(format!("superstep_{name}_us"), "us", us);
        }
        action("put_8_rate".into(), "M/s", self.puts_m_s);
        action("fetch_add_us".into(), "us", self.fetch_add_us);
        for (nth, name) in LONG_NAMES.into_iter().enumerate() {
            action(format!("put_{name}_rate"), "GB/s", self.puts_gb_s[nth]);
            action(format!("get_{name}_rate"), "GB/s", self.gets_gb_s[nth]);
        }
    }
}

/// Runs the rank of this process, with so many supersteps.
pub(super) fn run(rail: Arc<dyn Rail>, steps: usize) -> Result<Figures, Error> {
    let mut config = Config::default();
    config.runtime.workers = 1;
    Ok(hook_on_rail(rail, config, |ctx| measure(ctx, steps))?)
}

/// Runs the program with both ranks in this process, each with a worker.
pub(super) fn run_in_one_process(steps: usize) -> Result<Figures, Error> {
    let mut config = Config { ranks: 2, ..Config::default() };
    config.runtime.workers = 2;
    let figures = exec(config, |ctx| measure(ctx, steps))?;
    Ok(figures.into_iter().next().unwrap_or_default())
}

/// Measures supersteps, of which there are so many, in which each rank puts 8 bytes into a window of the next one,
/// with a known count.
///
/// **Units**: microseconds a superstep.
pub(super) async fn supersteps(ctx: Context, steps: usize) -> Result<f64, talpf::Error> {
    let inbox = Array::new(ctx.group(), vec![0u64; NUMBERS], NUMBERS)?;
    let slot = ctx.register_global(&inbox).await?;
    supersteps_into(&ctx, &inbox, &slot, [steps / 10, steps]).await
}

/// As [`supersteps`], into a window that there is. The first pass warms up.
async fn supersteps_into(
    ctx: &Context,
    inbox: &Array<u64>,
    slot: &MemorySlot<u64>,
    passes: [usize; 2],
) -> Result<f64, talpf::Error> {
    let next = Rank((ctx.rank().0 + 1) % ctx.size());
    let mut us = 0.0;
    for steps in passes {
        ctx.sync(SyncMode::DEFAULT).await?;
        let start = Instant::now();
        for _ in 0..steps {
            let round = ctx.round();
            let sync = ctx.sync(SyncMode::CACHED).window(&inbox.all()).spawn()?;
            round.put_copy(&[7], slot.at(next, 0)).await?;
            drop(round);
            sync.await?;
        }
        us = start.elapsed().as_secs_f64() * 1e6 / steps as f64;
    }
    Ok(us)
}

async fn measure(ctx: Context, steps: usize) -> Result<Figures, talpf::Error> {
    let other = Rank(1 - ctx.rank().0);
    let inbox = Array::new(ctx.group(), vec![0u64; NUMBERS], NUMBERS)?;
    let slot = ctx.register_global(&inbox).await?;
    // The first pass goes round each ring several times.
    let superstep_us = supersteps_into(&ctx, &inbox, &slot, [steps, 10 * steps]).await?;
    let mut figures = Figures { superstep_us, ..Figures::default() };
    for (nth, bytes) in IN_SUPERSTEPS.into_iter().enumerate() {
        let numbers = bytes / size_of::<u64>();
        let inbox = Array::new(ctx.group(), vec![0u64; numbers], numbers)?;
        let source = Array::new(ctx.group(), vec![7u64; numbers], numbers)?;
        let (slot, own) = (ctx.register_global(&inbox).await?, ctx.register_local(&source)?);
        let mut from = ctx.group().task("source").input(&source.all()).run(|from| from)?.await?;
        for steps in [steps, 4 * steps] {
            ctx.sync(SyncMode::DEFAULT).await?;
            let start = Instant::now();
            for _ in 0..steps {
                let round = ctx.round();
                let sync = ctx.sync(SyncMode::CACHED).window(&inbox.all()).spawn()?;
                from = round.put(from, slot.at(other, 0)).await?;
                drop(round);
                sync.await?;
            }
            figures.supersteps_us[nth] = start.elapsed().as_secs_f64() * 1e6 / steps as f64;
        }
        drop(from);
        ctx.deregister(slot)?;
        ctx.deregister(own)?;
    }
    let puts = steps * 10;
    for puts in [puts / 4, puts] {
        let sends = ctx.rank() == Rank(0);
        ctx.sync(SyncMode::DEFAULT).await?;
        let round = ctx.round();
        let arrivals = if sends { 0 } else { puts as u32 };
        let mode = SyncMode::msg(arrivals).with_barrier();
        let sync = ctx.sync(mode).window(&inbox.all()).spawn()?;
        let start = Instant::now();
        for number in 0..if sends { puts } else { 0 } {
            round.put_copy(&[7], slot.at(other, number % NUMBERS)).await?;
        }
        drop(round);
        sync.await?;
        figures.puts_m_s = puts as f64 / start.elapsed().as_secs_f64() / 1e6;
    }
    let result = Array::new(ctx.group(), vec![0u64], 1)?;
    ctx.register_local(&result)?;
    let mut found = ctx.group().task("result").inout(&result.all()).run(|found| found)?.await?;
    for adds in [steps / 10, steps] {
        let adds_here = ctx.rank() == Rank(0);
        ctx.sync(SyncMode::DEFAULT).await?;
        let arrivals = if adds_here { 0 } else { adds as u32 };
        let round = ctx.round();
        let mode = SyncMode::msg(arrivals).with_barrier();
        let sync = ctx.sync(mode).window(&inbox.all()).spawn()?;
        let start = Instant::now();
        for _ in 0..if adds_here { adds } else { 0 } {
            found = round.fetch_and_add(slot.at(other, 0), 1, found).await?;
        }
        drop(round);
        sync.await?;
        figures.fetch_add_us = start.elapsed().as_secs_f64() * 1e6 / adds as f64;
    }
    drop(found);
    for (nth, bytes) in LONG.into_iter().enumerate() {
        let numbers = bytes / size_of::<u64>();
        let inbox = Array::new(ctx.group(), vec![0u64; PLACES], numbers)?;
        let source = Array::new(ctx.group(), vec![7u64; PLACES], numbers)?;
        let (slot, own) = (ctx.register_global(&inbox).await?, ctx.register_local(&source)?);
        let places = PLACES / numbers;
        let times = ((steps << 20) / (20 * bytes)).max(places);
        let sends = ctx.rank() == Rank(0);
        for times in [places, times] {
            ctx.sync(SyncMode::DEFAULT).await?;
            let start = Instant::now();
            for number in 0..if sends { times } else { 0 } {
                let from = number % places * numbers;
                ctx.put(&source.region(from..from + numbers), slot.at(other, from))?;
            }
            let arrivals = if sends { 0 } else { times as u32 };
            ctx.sync(SyncMode::msg(arrivals).with_barrier()).window(&inbox.all()).await?;
            figures.puts_gb_s[nth] = 1e-9 * (bytes * times) as f64 / start.elapsed().as_secs_f64();
        }
        for times in [places, times] {
            ctx.sync(SyncMode::DEFAULT).await?;
            let start = Instant::now();
            for number in 0..if sends { times } else { 0 } {
                let from = number % places * numbers;
                ctx.get(slot.at(other, from), &source.region(from..from + numbers))?;
            }
            let served = if sends { 0 } else { times as u32 };
            ctx.sync(SyncMode::msg(served).with_barrier()).expose(&inbox.all()).await?;
            figures.gets_gb_s[nth] = 1e-9 * (bytes * times) as f64 / start.elapsed().as_secs_f64();
        }
        ctx.deregister(slot)?;
        ctx.deregister(own)?;
    }
    Ok(figures)
}
