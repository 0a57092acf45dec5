//! Supersteps and puts of two ranks, each in a process of its own.

use std::path::Path;
use std::time::Instant;

use talpf::{Config, Context, Rank, SyncMode, hook_on_rail};
use talpf_runtime::Array;

use super::{Kind, join::join};
use crate::error::Error;

/// Numbers that a window takes.
const NUMBERS: usize = 64;
/// Numbers of a long put, of 1 MiB.
const LONG: usize = 1 << 17;
/// Long puts that another window takes.
const PLACES: usize = 8;

/// Figures of a program.
pub(super) struct Figures {
    /// Time of a superstep in which both ranks put 8 bytes into a window, with a known count.
    pub(super) superstep_us: f64,
    /// Rate of puts of 8 bytes from the body of one task.
    pub(super) puts_m_s: f64,
    /// Rate of puts of 1 MiB, a task each.
    pub(super) long_gb_s: f64,
}

/// Runs the program of a process, with so many supersteps.
pub(super) fn run(folder: &Path, kind: Kind, process: u32, steps: usize) -> Result<Figures, Error> {
    let mut config = Config::default();
    config.runtime.workers = 1;
    let rail = join(folder, kind, process)?;
    Ok(hook_on_rail(rail, config, |ctx| measure(ctx, steps))?)
}

async fn measure(ctx: Context, steps: usize) -> Result<Figures, talpf::Error> {
    let other = Rank(1 - ctx.rank().0);
    let inbox = Array::new(ctx.group(), vec![0u64; NUMBERS], NUMBERS)?;
    let slot = ctx.register_global(&inbox).await?;
    let mut figures = Figures { superstep_us: 0.0, puts_m_s: 0.0, long_gb_s: 0.0 };
    // The first pass warms up.
    for steps in [steps / 4, steps] {
        ctx.sync(SyncMode::DEFAULT).await?;
        let start = Instant::now();
        for _ in 0..steps {
            let round = ctx.round();
            let sync = ctx.sync(SyncMode::CACHED).window(&inbox.all()).spawn()?;
            round.put_copy(&[7], slot.at(other, 0)).await?;
            drop(round);
            sync.await?;
        }
        figures.superstep_us = start.elapsed().as_secs_f64() * 1e6 / steps as f64;
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
    let inbox = Array::new(ctx.group(), vec![0u64; PLACES * LONG], LONG)?;
    let source = Array::new(ctx.group(), vec![7u64; LONG], LONG)?;
    let slot = ctx.register_global(&inbox).await?;
    let puts = (steps / 20).max(PLACES);
    for puts in [PLACES, puts] {
        let sends = ctx.rank() == Rank(0);
        ctx.sync(SyncMode::DEFAULT).await?;
        let start = Instant::now();
        for number in 0..if sends { puts } else { 0 } {
            ctx.put(&source.all(), slot.at(other, number % PLACES * LONG))?;
        }
        let arrivals = if sends { 0 } else { puts as u32 };
        ctx.sync(SyncMode::msg(arrivals).with_barrier()).window(&inbox.all()).await?;
        figures.long_gb_s = 8e-9 * (LONG * puts) as f64 / start.elapsed().as_secs_f64();
    }
    Ok(figures)
}
