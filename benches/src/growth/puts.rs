//! Cost of an operation, by the number of operations in one round.

use talpf::{Context, Error, MemorySlot, Rank, SyncMode};
use talpf_runtime::{Array, Matrix, Tiling};

use super::meter::Meter;
use super::plan::Samples;
use super::row::Row;
use super::shape::Shape;

const SIZES: &[usize] = &[100, 1_000, 10_000, 100_000];

/// Number of rounds of 100 operations into as much memory as one round of the largest size.
const ROUNDS: usize = 1_000;

/// Number of lanes with 100 rounds each in as much memory as one with the most.
const LANES: usize = 100;

pub(super) const ROWS: [Row; 6] = [
    Row::in_groups("puts", "puts of one round; one", SIZES, ROUNDS, |plan, shape| {
        plan.on_ranks(2, shape, puts)
    })
    .target(60.0),
    Row::in_groups(
        "put_tasks",
        "puts of one round spawned from parts of a tile into parts; one",
        SIZES,
        ROUNDS,
        |plan, shape| plan.on_ranks(2, shape, |ctx, meter, shape| tasks(ctx, meter, shape, PUTS)),
    )
    .target(300.0),
    Row::in_groups(
        "get_tasks",
        "gets of one round spawned from parts of a tile into parts; one",
        SIZES,
        ROUNDS,
        |plan, shape| plan.on_ranks(2, shape, |ctx, meter, shape| tasks(ctx, meter, shape, GETS)),
    )
    .target(300.0),
    Row::in_groups(
        "atomic_tasks",
        "atomics of one round spawned on parts of a tile; one",
        SIZES,
        ROUNDS,
        |plan, shape| plan.on_ranks(2, shape, |ctx, meter, shape| tasks(ctx, meter, shape, ADDS)),
    )
    .target(300.0),
    Row::in_groups(
        "rounds",
        "rounds of a put and a sync on a lane, spawned before the first of them ends; one",
        &[100, 1_000, 10_000],
        LANES,
        |plan, shape| plan.on_ranks(2, shape, rounds),
    )
    .counted_to(1_000),
    Row::new(
        "put_rows",
        "rows of a put of every other element; one",
        &[1_000, 10_000, 100_000],
        |plan, size| plan.on_ranks(2, size, rows),
    )
    .counted_to(10_000),
];

/// Measures puts of 8 bytes from rank 0 to every element of a window of rank 1.
async fn puts(ctx: Context, mut meter: Meter, shape: Shape) -> Samples {
    let inbox = Array::new(ctx.group(), vec![0u64; shape.units()], shape.size)?;
    let slot = ctx.register_global(&inbox).await?;
    let mode = SyncMode::CACHED.with_barrier();
    while meter.again() {
        ctx.sync(SyncMode::msg(0).with_barrier()).await?;
        meter.start();
        for part in shape.each() {
            let round = ctx.round();
            let sync = ctx.sync(mode).window(&inbox.region(part.clone())).spawn()?;
            if ctx.rank().0 == 0 {
                for index in part {
                    round.put_copy(&[7], slot.at(Rank(1), index)).await?;
                }
            }
            drop(round);
            sync.await?;
        }
        meter.stop(shape.units());
    }
    Ok(meter.into_samples())
}

/// Measures rounds in which each rank puts 8 bytes to the other, all spawned in advance, each group on a
/// lane of its own.
async fn rounds(ctx: Context, mut meter: Meter, shape: Shape) -> Samples {
    let mine = Array::new(ctx.group(), vec![1u64; shape.groups], 1)?;
    let inbox = Array::new(ctx.group(), vec![0u64; shape.groups], 1)?;
    let slot = ctx.register_global(&inbox).await?;
    let peer = Rank(1 - ctx.rank().0);
    let lanes: Vec<_> =
        (0..shape.groups).map(|lane| ctx.lane(lane as u8)).collect::<Result<_, _>>()?;
    while meter.again() {
        ctx.sync(SyncMode::msg(0).with_barrier()).await?;
        meter.start();
        for _ in 0..shape.size {
            for (at, lane) in lanes.iter().enumerate() {
                lane.put(&mine.region(at..=at), slot.at(peer, at))?;
                lane.sync(SyncMode::msg(1)).window(&inbox.region(at..=at)).spawn()?;
            }
        }
        for lane in &lanes {
            lane.sync(SyncMode::msg(0)).await?;
        }
        meter.stop(shape.units());
    }
    Ok(meter.into_samples())
}

/// Measures a put of a rectangle of one column, each row of which is a request, from rank 0 to the
/// same rectangle of rank 1.
async fn rows(ctx: Context, mut meter: Meter, size: usize) -> Samples {
    let new = || Matrix::new(ctx.group(), vec![0u64; 2 * size], 2, Tiling::new(size, 2));
    let (mine, inbox) = (new()?, new()?);
    ctx.register_local(&mine)?;
    let slot = ctx.register_global(&inbox).await?;
    while meter.again() {
        ctx.sync(SyncMode::msg(0).with_barrier()).await?;
        meter.start();
        if ctx.rank().0 == 0 {
            ctx.put(&mine.region(.., ..1), slot.region(Rank(1), .., ..1))?;
        }
        ctx.sync(SyncMode::CACHED.with_barrier()).window(&inbox.all()).await?;
        meter.stop(size);
    }
    Ok(meter.into_samples())
}

/// Function that spawns the operation on one element of an array.
type Spawn = fn(&Context, &Array<u64>, &MemorySlot<u64>, usize) -> Result<(), Error>;

/// Operations of one kind, on an element of this rank and the same element of the other rank's
/// slot.
#[derive(Clone, Copy)]
struct Operations {
    spawn: Spawn,
    are_gets: bool,
}

const PUTS: Operations = Operations { spawn: put, are_gets: false };
const GETS: Operations = Operations { spawn: get, are_gets: true };
const ADDS: Operations = Operations { spawn: add, are_gets: false };

fn put(ctx: &Context, mine: &Array<u64>, to: &MemorySlot<u64>, at: usize) -> Result<(), Error> {
    ctx.put(&mine.region(at..at + 1), to.at(Rank(1), at))
}

fn get(ctx: &Context, mine: &Array<u64>, from: &MemorySlot<u64>, at: usize) -> Result<(), Error> {
    ctx.get(from.at(Rank(1), at), &mine.region(at..at + 1))
}

fn add(ctx: &Context, mine: &Array<u64>, to: &MemorySlot<u64>, at: usize) -> Result<(), Error> {
    ctx.fetch_and_add(to.at(Rank(1), at), 1, &mine.region(at..at + 1))
}

/// Measures operations that rank 0 spawns on all elements of an array of rank 1, which opens a
/// window on it or exposes it.
async fn tasks(ctx: Context, mut meter: Meter, shape: Shape, operations: Operations) -> Samples {
    let mine = Array::new(ctx.group(), vec![1u64; shape.units()], shape.size)?;
    let theirs = Array::new(ctx.group(), vec![0u64; shape.units()], shape.size)?;
    let slot = ctx.register_global(&theirs).await?;
    ctx.register_local(&mine)?;
    let mode = SyncMode::CACHED.with_barrier();
    while meter.again() {
        ctx.sync(SyncMode::msg(0).with_barrier()).await?;
        meter.start();
        for mut part in shape.each() {
            let all = theirs.region(part.clone());
            if ctx.rank().0 == 0 {
                part.try_for_each(|at| (operations.spawn)(&ctx, &mine, &slot, at))?;
            }
            let sync = ctx.sync(mode);
            let sync = if operations.are_gets { sync.expose(&all) } else { sync.window(&all) };
            sync.await?;
        }
        meter.stop(shape.units());
    }
    Ok(meter.into_samples())
}
