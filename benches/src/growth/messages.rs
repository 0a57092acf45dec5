//! Cost of messages, communicators and requests, by their number.

use talpf_runtime::Array;
use tampi_shim::{ANY_SOURCE, Communicator, Rank, Request, Select, Tag, iwaitall};

use super::meter::Meter;
use super::plan::Samples;
use super::row::Row;
use super::shape::Shape;

const SIZES: &[usize] = &[100, 1_000, 10_000, 100_000];

/// Number of groups of 100 requests that need as much memory as one of the largest size.
const GROUPS: usize = 1_000;

pub(super) const ROWS: [Row; 7] = [
    Row::in_groups(
        "unmatched_receives",
        "receives of as many tags of a communicator, matched from the last; one",
        SIZES,
        GROUPS,
        |plan, shape| {
            plan.on_members(2, shape, |world, meter, shape| {
                receives(world, meter, shape, Rank(1).into())
            })
        },
    ),
    Row::in_groups(
        "unmatched_wildcards",
        "the same receives, of any source; one",
        SIZES,
        GROUPS,
        |plan, shape| {
            plan.on_members(2, shape, |world, meter, shape| {
                receives(world, meter, shape, ANY_SOURCE)
            })
        },
    ),
    Row::in_groups(
        "unmatched_messages",
        "messages of as many tags of a communicator, received from the last; one",
        SIZES,
        GROUPS,
        |plan, shape| plan.on_members(2, shape, messages),
    ),
    Row::in_groups(
        "tags",
        "tags of a communicator in use one after the other; a message",
        SIZES,
        GROUPS,
        |plan, shape| plan.on_members(2, shape, tags),
    ),
    Row::new(
        "duplicates",
        "communicators; one, made and used",
        &[10, 100, 1_000, 10_000],
        |plan, size| plan.on_members(2, size, duplicates),
    )
    .counted_to(1_000),
    Row::in_groups(
        "communicators",
        "communicators that receive one after the other; a message",
        &[10, 100, 1_000, 10_000],
        GROUPS / 10,
        |plan, shape| plan.on_members(2, shape, communicators),
    )
    .counted_to(1_000),
    Row::in_groups(
        "waitall",
        "requests that one task waits for; one",
        SIZES,
        GROUPS,
        |plan, shape| plan.on_members(2, shape, waitall),
    ),
];

/// Tag of the messages that start a measurement.
const GO: Tag = Tag(0);

fn tag(number: usize) -> Tag {
    Tag(number as u32 + 1)
}

fn other(world: &Communicator) -> Rank {
    Rank(1 - world.rank().0)
}

async fn go(world: &Communicator) -> Result<(), tampi_shim::Error> {
    world.send(Vec::<u8>::new(), other(world), GO).await.map(drop)
}

async fn wait_for_go(world: &Communicator) -> Result<(), tampi_shim::Error> {
    world.recv(Vec::<u8>::new(), other(world), GO).await.map(drop)
}

async fn all<B: Send + 'static>(requests: Vec<Request<B>>) -> Result<(), tampi_shim::Error> {
    for request in requests {
        request.await?;
    }
    Ok(())
}

/// Makes a communicator for each group.
async fn communicators_of(
    world: &Communicator,
    shape: Shape,
) -> Result<Vec<Communicator>, tampi_shim::Error> {
    let mut made = Vec::with_capacity(shape.groups);
    for _ in 0..shape.groups {
        made.push(world.duplicate().await?);
    }
    Ok(made)
}

/// Returns all tags of all groups, with the communicators of these.
fn tags_of(
    worlds: &[Communicator],
    shape: Shape,
) -> impl DoubleEndedIterator<Item = (&Communicator, Tag)> {
    worlds.iter().flat_map(move |world| (0..shape.size).map(move |number| (world, tag(number))))
}

/// Measures receives that rank 0 posts before rank 1 sends.
async fn receives(
    world: Communicator,
    mut meter: Meter,
    shape: Shape,
    source: Select<Rank>,
) -> Samples {
    let worlds = communicators_of(&world, shape).await?;
    while meter.again() {
        meter.start();
        if world.rank().0 == 0 {
            let receive = |(world, tag): (&Communicator, _)| world.irecv(vec![0u64], source, tag);
            let requests = tags_of(&worlds, shape).map(receive).collect();
            go(&world).await?;
            all(requests).await?;
        } else {
            wait_for_go(&world).await?;
            let send =
                |(world, tag): (&Communicator, _)| world.isend(vec![7u64], other(world), tag);
            all(tags_of(&worlds, shape).rev().map(send).collect()).await?;
        }
        meter.stop(shape.units());
    }
    Ok(meter.into_samples())
}

/// Measures messages that rank 1 sends before rank 0 receives.
async fn messages(world: Communicator, mut meter: Meter, shape: Shape) -> Samples {
    let worlds = communicators_of(&world, shape).await?;
    while meter.again() {
        world.barrier().await?;
        meter.start();
        if world.rank().0 == 0 {
            wait_for_go(&world).await?;
            let receive =
                |(world, tag): (&Communicator, _)| world.irecv(vec![0u64], other(world), tag);
            all(tags_of(&worlds, shape).rev().map(receive).collect()).await?;
        } else {
            let send =
                |(world, tag): (&Communicator, _)| world.isend(vec![7u64], other(world), tag);
            let requests = tags_of(&worlds, shape).map(send).collect();
            go(&world).await?;
            all(requests).await?;
        }
        meter.stop(shape.units());
    }
    Ok(meter.into_samples())
}

/// Measures receives that are posted in the order of the sends.
async fn tags(world: Communicator, mut meter: Meter, shape: Shape) -> Samples {
    let worlds = communicators_of(&world, shape).await?;
    while meter.again() {
        world.barrier().await?;
        meter.start();
        let start = |(world, tag): (&Communicator, _)| match world.rank().0 {
            0 => world.irecv(vec![0u64], other(world), tag),
            _ => world.isend(vec![7u64], other(world), tag),
        };
        all(tags_of(&worlds, shape).map(start).collect()).await?;
        meter.stop(shape.units());
    }
    Ok(meter.into_samples())
}

async fn duplicates(world: Communicator, mut meter: Meter, size: usize) -> Samples {
    while meter.again() {
        meter.start();
        let mut made = Vec::with_capacity(size);
        for _ in 0..size {
            let world = world.duplicate().await?;
            match world.rank().0 {
                0 => wait_for_go(&world).await?,
                _ => go(&world).await?,
            }
            made.push(world);
        }
        world.barrier().await?;
        drop(made);
        meter.stop(size);
    }
    Ok(meter.into_samples())
}

/// Measures a receive of each communicator of a group, one after the other, group after group.
async fn communicators(world: Communicator, mut meter: Meter, shape: Shape) -> Samples {
    let made = communicators_of(&world, Shape { groups: shape.units(), size: 1 }).await?;
    while meter.again() {
        world.barrier().await?;
        meter.start();
        for group in shape.each() {
            if world.rank().0 == 0 {
                go(&world).await?;
                for world in &made[group] {
                    world.recv(vec![0u64], other(world), GO).await?;
                }
            } else {
                wait_for_go(&world).await?;
                for world in &made[group] {
                    world.send(vec![7u64], other(world), GO).await?;
                }
            }
        }
        meter.stop(shape.units());
    }
    Ok(meter.into_samples())
}

/// Measures tasks of rank 0 that are bound to receives, and of rank 1 that are bound to the sends: one
/// task for each group.
async fn waitall(world: Communicator, mut meter: Meter, shape: Shape) -> Samples {
    let done = Array::new(world.group(), vec![0u64; shape.groups], 1)?;
    let worlds = communicators_of(&world, shape).await?;
    while meter.again() {
        world.barrier().await?;
        meter.start();
        for (group, ends) in worlds.iter().enumerate() {
            let ends = ends.clone();
            let task = world.group().task("bound").inout(&done.region(group..=group));
            task.spawn(move |done| {
                let start = |number| match ends.rank().0 {
                    0 => ends.irecv(vec![0u64], other(&ends), tag(number)),
                    _ => ends.isend(vec![7u64], other(&ends), tag(number)),
                };
                if let Err(error) = iwaitall((0..shape.size).map(start)) {
                    done.fail(error.to_string());
                }
            })?;
        }
        world.group().task("after").input(&done.all()).run(|_| ())?.await?;
        meter.stop(shape.units());
    }
    Ok(meter.into_samples())
}
