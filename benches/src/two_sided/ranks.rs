//! Cost of messages between two ranks: the programs of `benches/peers/two_sided.c` in blocking
//! mode, where waiting suspends the task.

use std::time::Duration;

use talpf_runtime::{Array, InOut};
use tampi_shim::{Communicator, Error, Rank, Tag};

use super::repeat::Repeat;
use super::sizes::{DEPTHS, SIZES, Value, WINDOW, one_way};

const PAYLOAD: Tag = Tag(0);
const FILLER: u32 = 1;

/// Returns the other rank of two.
pub(super) fn other(world: &Communicator) -> Rank {
    Rank(1 - world.rank().0)
}

/// Creates a buffer of this rank, as the guard of an array.
async fn buffer(world: &Communicator, size: usize, byte: u8) -> Result<InOut<u8>, Error> {
    let array = Array::new(world.group(), vec![byte; size], size)?;
    Ok(world.group().task("buffer").inout(&array.all()).run(|guard| guard)?.await?)
}

/// Measures all figures of two ranks.
pub(super) async fn all(world: Communicator, budget: Duration) -> Result<Vec<Value>, Error> {
    let mut values = one_way_times(&world, budget, &SIZES).await?;
    values.push(rate(&world, budget).await?);
    for depth in DEPTHS {
        values.push(matching(&world, budget, depth).await?);
    }
    Ok(values)
}

/// Measures one-way times of these sizes, and the bandwidth of the large ones.
pub(super) async fn one_way_times(
    world: &Communicator,
    budget: Duration,
    sizes: &[(usize, &str)],
) -> Result<Vec<Value>, Error> {
    let mut values = Vec::new();
    for &size in sizes {
        values.extend(one_way(size, exchange(world, budget, size.0).await?));
    }
    Ok(values)
}

/// Measures half of the round-trip time of a message.
pub(super) async fn exchange(
    world: &Communicator,
    budget: Duration,
    size: usize,
) -> Result<f64, Error> {
    let (rank, other) = (world.rank().0, other(world));
    let mut outgoing = buffer(world, size, rank as u8 + 1).await?;
    let mut incoming = buffer(world, size, 0).await?;
    let mut repeat = Repeat::new(world, budget);
    while let Some(repetitions) = repeat.next().await? {
        for _ in 0..repetitions {
            if rank == 0 {
                outgoing = world.send(outgoing, other, PAYLOAD).await?;
            }
            (incoming, _) = world.recv(incoming, other, PAYLOAD).await?;
            if rank == 1 {
                outgoing = world.send(outgoing, other, PAYLOAD).await?;
            }
        }
    }
    assert!(incoming.iter().all(|byte| u32::from(*byte) == other.0 + 1), "wrong data");
    Ok(repeat.seconds() / 2.0)
}

/// Measures the message rate: rank 0 sends a window of messages and waits until rank 1 confirms
/// their arrival.
async fn rate(world: &Communicator, budget: Duration) -> Result<Value, Error> {
    let (rank, other) = (world.rank().0, other(world));
    let mut buffers: Vec<_> = (0..WINDOW as u64).map(|slot| vec![slot]).collect();
    let mut requests = Vec::with_capacity(WINDOW);
    let mut repeat = Repeat::new(world, budget);
    while let Some(repetitions) = repeat.next().await? {
        for _ in 0..repetitions {
            requests.extend(buffers.drain(..).map(|buffer| match rank {
                0 => world.isend(buffer, other, PAYLOAD),
                _ => world.irecv(buffer, other, PAYLOAD),
            }));
            for request in requests.drain(..) {
                buffers.push(request.await?.0);
            }
            let notice = Vec::<u8>::new();
            match rank {
                0 => world.recv(notice, other, PAYLOAD).await?.0,
                _ => world.send(notice, other, PAYLOAD).await?,
            };
        }
    }
    assert!(buffers.iter().map(|buffer| buffer[0]).eq(0..WINDOW as u64), "wrong data");
    Ok(("rate_8B_mops".to_owned(), WINDOW as f64 / repeat.seconds() * 1e-6))
}

/// Measures one-way times while `depth` receives with other tags are posted.
async fn matching(world: &Communicator, budget: Duration, depth: u32) -> Result<Value, Error> {
    let other = other(world);
    let tags = || (0..depth).map(|number| Tag(FILLER + number));
    let posted: Vec<_> = tags().map(|tag| world.irecv(Vec::<u8>::new(), other, tag)).collect();
    let seconds = exchange(world, budget, 8).await?;
    for tag in tags() {
        world.send(Vec::<u8>::new(), other, tag).await?;
    }
    for request in posted {
        request.await?;
    }
    Ok((format!("match_{depth}_ns"), seconds * 1e9))
}
