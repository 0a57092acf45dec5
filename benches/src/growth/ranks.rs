//! Cost per rank of syncs, of barriers, and of starting and ending a run, by the number of ranks.

use talpf::{Context, SyncMode};
use tampi_shim::Communicator;

use super::meter::Meter;
use super::plan::{Plan, Samples};
use super::row::Row;
use crate::error::Error;

const RANKS: &[usize] = &[10, 100, 128];

pub(super) const ROWS: [Row; 5] = [
    Row::new("default_sync", "ranks of a default sync; a rank", RANKS, |plan, size| {
        plan.on_ranks(size as u32, size, |ctx, meter, size| {
            syncs(ctx, meter, size, SyncMode::DEFAULT)
        })
    })
    .target(4_000.0)
    .counted_to(100),
    Row::new("barrier", "ranks of a barrier, one-sided; a rank", RANKS, |plan, size| {
        plan.on_ranks(size as u32, size, |ctx, meter, size| {
            syncs(ctx, meter, size, SyncMode::msg(0).with_barrier())
        })
    })
    .target(3_000.0)
    .counted_to(100),
    Row::new("barrier_two_sided", "ranks of a barrier, two-sided; a rank", RANKS, |plan, size| {
        plan.on_members(size as u32, size, barriers)
    })
    .target(3_000.0)
    .counted_to(100),
    Row::new(
        "exec",
        "ranks of a run with puts; start and end of one",
        &[10, 100, 1_000, 4_000],
        |plan, size| starts(plan, size, start_with_puts),
    )
    .counted_to(200),
    Row::new(
        "exec_two_sided",
        "ranks of a run with messages; start and end of one",
        &[10, 100, 1_000],
        |plan, size| starts(plan, size, start_with_messages),
    )
    .counted_to(200),
];

/// Syncs or barriers in one round.
const REPETITIONS: usize = 10;

async fn syncs(ctx: Context, mut meter: Meter, size: usize, mode: SyncMode) -> Samples {
    while meter.again() {
        meter.start();
        for _ in 0..REPETITIONS {
            ctx.sync(mode).await?;
        }
        meter.stop(REPETITIONS * size);
    }
    Ok(meter.into_samples())
}

async fn barriers(world: Communicator, mut meter: Meter, size: usize) -> Samples {
    while meter.again() {
        meter.start();
        for _ in 0..REPETITIONS {
            world.barrier().await?;
        }
        meter.stop(REPETITIONS * size);
    }
    Ok(meter.into_samples())
}

/// Measures programs that consist of a single barrier.
fn starts(plan: Plan, size: usize, start: fn(Plan, u32) -> Result<(), Error>) -> Samples {
    let mut meter = plan.meter(size);
    while meter.again() {
        meter.start();
        start(plan, size as u32)?;
        meter.stop(size);
    }
    Ok(meter.into_samples())
}

fn start_with_puts(plan: Plan, ranks: u32) -> Result<(), Error> {
    let main = async |ctx: Context| ctx.sync(SyncMode::msg(0).with_barrier()).await;
    talpf::exec(plan.puts(ranks)?, main)?;
    Ok(())
}

fn start_with_messages(plan: Plan, ranks: u32) -> Result<(), Error> {
    let main = async |world: Communicator| world.barrier().await;
    tampi_shim::exec(plan.messages(ranks)?, main)?;
    Ok(())
}
