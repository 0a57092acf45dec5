//! Cost of messages, communicators and requests, by their number.

use talpf_runtime::Array;
use tampi_shim::{ANY_SOURCE, Communicator, Rank, Request, Select, Tag, iwaitall};

use super::meter::Meter;
use super::plan::Samples;
use super::row::Row;

const SIZES: &[usize] = &[100, 1_000, 10_000, 100_000];

pub(super) const ROWS: [Row; 7] = [
    Row::new(
        "unmatched_receives",
        "receives of as many tags, matched from the last; one",
        SIZES,
        |plan, size| {
            plan.on_members(2, size, |world, meter, size| {
                receives(world, meter, size, Rank(1).into())
            })
        },
    ),
    Row::new(
        "unmatched_wildcards",
        "the same receives, of any source; one",
        SIZES,
        |plan, size| {
            plan.on_members(2, size, |world, meter, size| receives(world, meter, size, ANY_SOURCE))
        },
    ),
    Row::new(
        "unmatched_messages",
        "messages of as many tags, received from the last; one",
        SIZES,
        |plan, size| plan.on_members(2, size, messages),
    ),
    Row::new("tags", "tags in use one after the other; a message", SIZES, |plan, size| {
        plan.on_members(2, size, tags)
    }),
    Row::new(
        "duplicates",
        "communicators; one, made and used",
        &[10, 100, 1_000, 10_000],
        |plan, size| plan.on_members(2, size, duplicates),
    )
    .counted_to(1_000),
    Row::new(
        "communicators",
        "communicators that receive; a message",
        &[10, 100, 1_000, 10_000],
        |plan, size| plan.on_members(2, size, communicators),
    )
    .counted_to(1_000),
    Row::new("waitall", "requests that one task waits for; one", SIZES, |plan, size| {
        plan.on_members(2, size, waitall)
    }),
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

/// Measures receives that rank 0 posts before rank 1 sends.
async fn receives(
    world: Communicator,
    mut meter: Meter,
    size: usize,
    source: Select<Rank>,
) -> Samples {
    while meter.again() {
        meter.start();
        if world.rank().0 == 0 {
            let receive = |number| world.irecv(vec![0u64], source, tag(number));
            let requests = (0..size).map(receive).collect();
            go(&world).await?;
            all(requests).await?;
        } else {
            wait_for_go(&world).await?;
            let send = |number| world.isend(vec![7u64], other(&world), tag(number));
            all((0..size).rev().map(send).collect()).await?;
        }
        meter.stop(size);
    }
    Ok(meter.into_samples())
}

/// Measures messages that rank 1 sends before rank 0 receives.
async fn messages(world: Communicator, mut meter: Meter, size: usize) -> Samples {
    while meter.again() {
        world.barrier().await?;
        meter.start();
        if world.rank().0 == 0 {
            wait_for_go(&world).await?;
            let receive = |number| world.irecv(vec![0u64], other(&world), tag(number));
            all((0..size).rev().map(receive).collect()).await?;
        } else {
            let send = |number| world.isend(vec![7u64], other(&world), tag(number));
            let requests = (0..size).map(send).collect();
            go(&world).await?;
            all(requests).await?;
        }
        meter.stop(size);
    }
    Ok(meter.into_samples())
}

/// Measures receives that are posted in the order of the sends.
async fn tags(world: Communicator, mut meter: Meter, size: usize) -> Samples {
    while meter.again() {
        world.barrier().await?;
        meter.start();
        let start = |number| match world.rank().0 {
            0 => world.irecv(vec![0u64], other(&world), tag(number)),
            _ => world.isend(vec![7u64], other(&world), tag(number)),
        };
        all((0..size).map(start).collect()).await?;
        meter.stop(size);
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

/// Measures receives of many communicators, each posted before its message arrives.
async fn communicators(world: Communicator, mut meter: Meter, size: usize) -> Samples {
    let mut made = Vec::with_capacity(size);
    for _ in 0..size {
        made.push(world.duplicate().await?);
    }
    while meter.again() {
        world.barrier().await?;
        meter.start();
        if world.rank().0 == 0 {
            let receive = |world: &Communicator| world.irecv(vec![0u64], other(world), GO);
            let requests = made.iter().map(receive).collect();
            go(&world).await?;
            all(requests).await?;
        } else {
            wait_for_go(&world).await?;
            let send = |world: &Communicator| world.isend(vec![7u64], other(world), GO);
            all(made.iter().rev().map(send).collect()).await?;
        }
        meter.stop(size);
    }
    Ok(meter.into_samples())
}

/// Measures a task of rank 0 bound to all receives, and one of rank 1 bound to all sends.
async fn waitall(world: Communicator, mut meter: Meter, size: usize) -> Samples {
    let done = Array::new(world.group(), vec![0u64; 1], 1)?;
    while meter.again() {
        world.barrier().await?;
        meter.start();
        let ends = world.clone();
        let task = world.group().task("bound").inout(&done.all());
        task.spawn(move |done| {
            let start = |number| match ends.rank().0 {
                0 => ends.irecv(vec![0u64], other(&ends), tag(number)),
                _ => ends.isend(vec![7u64], other(&ends), tag(number)),
            };
            if let Err(error) = iwaitall((0..size).map(start)) {
                done.fail(error.to_string());
            }
        })?;
        world.group().task("after").input(&done.all()).run(|_| ())?.await?;
        meter.stop(size);
    }
    Ok(meter.into_samples())
}
