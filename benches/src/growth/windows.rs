//! Cost of windows and lanes, by the number in use.

use talpf::{Context, Rank, SyncMode};
use talpf_runtime::Array;

use super::meter::Meter;
use super::plan::Samples;
use super::row::Row;

const SIZES: &[usize] = &[10, 100, 1_000, 2_000];
const LANES: &[usize] = &[10, 100, 255];

pub(super) const ROWS: [Row; 3] = [
    Row::new(
        "windows",
        "windows of one sync; one, declared, opened and closed",
        SIZES,
        |plan, size| plan.on_ranks(2, size, |ctx, meter, size| windows(ctx, meter, size, false)),
    )
    .target(500.0)
    .counted_to(2_000),
    Row::new("windows_put", "windows of one sync, a put into each; one", SIZES, |plan, size| {
        plan.on_ranks(2, size, |ctx, meter, size| windows(ctx, meter, size, true))
    })
    .target(500.0)
    .counted_to(2_000),
    Row::new("lanes", "lanes in use; a sync of one, with a put each way", LANES, |plan, size| {
        plan.on_ranks(2, size, lanes)
    })
    .counted_to(255),
];

/// Measures windows that both ranks open; with `with_puts` both put into them.
async fn windows(ctx: Context, mut meter: Meter, size: usize, with_puts: bool) -> Samples {
    let array = Array::new(ctx.group(), vec![0u64; size], 1)?;
    let slot = ctx.register_global(&array).await?;
    let other = Rank(1 - ctx.rank().0);
    let mode = if with_puts { SyncMode::CACHED } else { SyncMode::msg(0) }.with_barrier();
    while meter.again() {
        ctx.sync(SyncMode::msg(0).with_barrier()).await?;
        meter.start();
        let round = ctx.round();
        let sync = (0..size).fold(ctx.sync(mode), |sync, tile| sync.window(&array.tile(tile)));
        let sync = sync.spawn()?;
        for index in (0..size).filter(|_| with_puts) {
            round.put_copy(&[7], slot.at(other, index)).await?;
        }
        drop(round);
        sync.await?;
        meter.stop(size);
    }
    Ok(meter.into_samples())
}

/// Measures syncs of each lane, one after the other, several times.
async fn lanes(ctx: Context, mut meter: Meter, size: usize) -> Samples {
    const REPETITIONS: usize = 10;
    let array = Array::new(ctx.group(), vec![0u64; size], 1)?;
    let slot = ctx.register_global(&array).await?;
    let other = Rank(1 - ctx.rank().0);
    while meter.again() {
        ctx.sync(SyncMode::msg(0).with_barrier()).await?;
        meter.start();
        for index in (0..REPETITIONS).flat_map(|_| 0..size) {
            let lane = ctx.lane(index as u8 + 1)?;
            let round = lane.round();
            let sync = lane.sync(SyncMode::CACHED).window(&array.tile(index)).spawn()?;
            round.put_copy(&[7], slot.at(other, index)).await?;
            drop(round);
            sync.await?;
        }
        meter.stop(REPETITIONS * size);
    }
    Ok(meter.into_samples())
}
