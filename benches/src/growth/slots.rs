//! Cost of a sync, a get and a registration, by the number of registered slots.

use talpf::{Context, MemorySlot, Rank, SyncMode};
use talpf_runtime::Array;

use super::meter::Meter;
use super::plan::Samples;
use super::row::Row;

const SIZES: &[usize] = &[100, 1_000, 10_000, 100_000];

pub(super) const ROWS: [Row; 4] = [
    Row::new(
        "slots_sync",
        "registered slots; a cached sync with a put and a window",
        SIZES,
        |plan, size| plan.on_ranks(2, size, syncs),
    ),
    Row::new("slots_get", "registered slots; a get in a sync of its own", SIZES, |plan, size| {
        plan.on_ranks(2, size, gets)
    }),
    Row::new(
        "slots_bsp",
        "registered slots; a superstep of plain BSP with a put",
        SIZES,
        |plan, size| plan.on_ranks(2, size, plain_supersteps),
    ),
    Row::new(
        "slots_register",
        "registered slots; one more, registered and deregistered",
        SIZES,
        |plan, size| plan.on_ranks(2, size, registrations),
    ),
];

/// Operations in one round.
const OPERATIONS: usize = 200;

/// Slots that no operation uses.
struct Unused {
    _arrays: Vec<Array<u64>>,
    _slots: Vec<MemorySlot<u64>>,
}

impl Unused {
    fn register(ctx: &Context, count: usize, limit: usize) -> Result<Self, talpf::Error> {
        ctx.resize_memory_register(limit + OPERATIONS + 8)?;
        let (mut arrays, mut slots) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let array = Array::new(ctx.group(), vec![0u64; 1], 1)?;
            slots.push(ctx.register_local(&array)?);
            arrays.push(array);
        }
        Ok(Unused { _arrays: arrays, _slots: slots })
    }
}

async fn syncs(ctx: Context, mut meter: Meter, size: usize) -> Samples {
    let _before = Unused::register(&ctx, size / 2, size)?;
    let inbox = Array::new(ctx.group(), vec![0u64; 1], 1)?;
    let slot = ctx.register_global(&inbox).await?;
    let _after = Unused::register(&ctx, size - size / 2, size)?;
    let other = Rank(1 - ctx.rank().0);
    while meter.again() {
        ctx.sync(SyncMode::msg(0).with_barrier()).await?;
        meter.start();
        for _ in 0..OPERATIONS {
            let round = ctx.round();
            let sync = ctx.sync(SyncMode::CACHED).window(&inbox.all()).spawn()?;
            round.put_copy(&[7], slot.at(other, 0)).await?;
            drop(round);
            sync.await?;
        }
        meter.stop(OPERATIONS);
    }
    Ok(meter.into_samples())
}

async fn gets(ctx: Context, mut meter: Meter, size: usize) -> Samples {
    let _before = Unused::register(&ctx, size / 2, size)?;
    let theirs = Array::new(ctx.group(), vec![0u64; 1], 1)?;
    let mine = Array::new(ctx.group(), vec![0u64; 1], 1)?;
    let slot = ctx.register_global(&theirs).await?;
    ctx.register_local(&mine)?;
    let _after = Unused::register(&ctx, size - size / 2, size)?;
    let other = Rank(1 - ctx.rank().0);
    let mut into = ctx.group().task("into").inout(&mine.all()).run(|into| into)?.await?;
    while meter.again() {
        ctx.sync(SyncMode::msg(0).with_barrier()).await?;
        meter.start();
        for _ in 0..OPERATIONS {
            let round = ctx.round();
            let sync = ctx.sync(SyncMode::CACHED).expose(&theirs.all()).spawn()?;
            into = round.get(slot.at(other, 0), into).await?;
            drop(round);
            sync.await?;
        }
        meter.stop(OPERATIONS);
    }
    Ok(meter.into_samples())
}

async fn plain_supersteps(ctx: Context, mut meter: Meter, size: usize) -> Samples {
    let _before = Unused::register(&ctx, size / 2, size)?;
    let inbox = Array::new(ctx.group(), vec![0u64; 1], 1)?;
    let mine = Array::new(ctx.group(), vec![7u64; 1], 1)?;
    let slot = ctx.register_global(&inbox).await?;
    let _after = Unused::register(&ctx, size - size / 2, size)?;
    let other = Rank(1 - ctx.rank().0);
    let mut bsp = ctx.bsp();
    while meter.again() {
        bsp.sync().await?;
        meter.start();
        for _ in 0..OPERATIONS {
            bsp.put(&mine.all(), slot.at(other, 0))?;
            bsp.sync().await?;
        }
        meter.stop(OPERATIONS);
    }
    Ok(meter.into_samples())
}

async fn registrations(ctx: Context, mut meter: Meter, size: usize) -> Samples {
    let _before = Unused::register(&ctx, size, size)?;
    let new = |_| Array::new(ctx.group(), vec![0u64; 1], 1);
    let arrays = (0..OPERATIONS).map(new).collect::<Result<Vec<_>, _>>()?;
    while meter.again() {
        meter.start();
        let register = |array| ctx.register_local(array);
        let slots = arrays.iter().map(register).collect::<Result<Vec<_>, _>>()?;
        slots.into_iter().try_for_each(|slot| ctx.deregister(slot))?;
        meter.stop(OPERATIONS);
    }
    Ok(meter.into_samples())
}
