//! Cost of a byte of a large put, relative to a copy of the same size.

use std::hint::black_box;
use std::time::Instant;

use talpf::{Context, Rank, SyncMode};
use talpf_runtime::{Array, In};

use super::plan::Samples;
use super::row::Row;

pub(super) const ROWS: [Row; 2] = [ONE_WAY, EACH_WAY];

/// Sizes, in MiB.
const SIZES: &[usize] = &[1, 16, 64];
const MIB: usize = 1 << 20;
/// Wanted cost: that of 90 % of the copy's rate.
const TARGET: f64 = 1.0 / 0.9;
/// MiB moved in one sample.
const MOVED: usize = 64;
const SAMPLES: usize = 11;

const ONE_WAY: Row = of_copies(
    "large_puts",
    "MiB of a put; its time as a multiple of that of a copy by the same task",
    |plan, size| plan.on_ranks(2, size, |ctx, _, size| compare(ctx, size, false)),
);

const EACH_WAY: Row = of_copies(
    "large_puts_each_way",
    "MiB of a put each way; its time as a multiple of that of copies by both tasks at once",
    |plan, size| plan.on_ranks(2, size, |ctx, _, size| compare(ctx, size, true)),
);

const fn of_copies(
    name: &'static str,
    what: &'static str,
    sample: fn(super::plan::Plan, usize) -> Samples,
) -> Row {
    Row { counted: None, unit: "x", ..Row::new(name, what, SIZES, sample).target(TARGET) }
}

/// Measures a put of an array from rank 0 to rank 1, and then a copy of it; with `each_way` both
/// ranks put and copy.
async fn compare(ctx: Context, size: usize, each_way: bool) -> Samples {
    let (bytes, repetitions) = (size * MIB, MOVED.div_ceil(size));
    let new = |byte: u8| Array::new(ctx.group(), vec![byte; bytes], bytes);
    let (mine, inbox, copy) = (new(7)?, new(0)?, new(0)?);
    let slot = ctx.register_global(&inbox).await?;
    ctx.register_local(&mine)?;
    let other = Rank(1 - ctx.rank().0);
    let puts = each_way || ctx.rank().0 == 0;
    let mode = SyncMode::CACHED.with_barrier();
    let mut samples = Vec::new();
    for _ in 0..=SAMPLES {
        let read = ctx.group().task("source").input(&mine.all());
        let mut from: In<u8> = read.run(|mine| mine)?.await?;
        ctx.sync(SyncMode::msg(0).with_barrier()).await?;
        let start = Instant::now();
        for _ in 0..repetitions {
            let round = ctx.round();
            let sync = ctx.sync(mode).window(&inbox.all()).spawn()?;
            if puts {
                from = round.put(from, slot.at(other, 0)).await?;
            }
            drop(round);
            sync.await?;
        }
        let put = start.elapsed().as_secs_f64();
        drop(from);
        ctx.sync(SyncMode::msg(0).with_barrier()).await?;
        let start = Instant::now();
        for _ in (0..repetitions).filter(|_| puts) {
            let task = ctx.group().task("copy").input(&mine.all()).output(&copy.all());
            task.run(|mine, mut copy| copy.copy_from_slice(black_box(&mine)))?.await?;
        }
        ctx.sync(SyncMode::msg(0).with_barrier()).await?;
        samples.push(put / start.elapsed().as_secs_f64());
    }
    // The first sample warms up the caches.
    samples.remove(0);
    Ok(samples)
}
