use talpf_runtime::Array;
use tampi_shim::{Communicator, Error, Rank, Tag, iwaitall};

use crate::common::{config, nothing_is_left, run_well, with_protocols};

/// Messages of each rank to each other.
const EACH: usize = 5;

/// A task that receives from all ranks and one that sends to all, with hundreds of requests each:
/// more than a ring has cells and a queue pair requests. `length` words a message.
async fn all_to_all(world: Communicator, length: usize) -> Result<(), Error> {
    let (group, rank, size) = (world.group().clone(), world.rank().0, world.size());
    let places = size as usize * EACH;
    let values = Array::new(&group, vec![u32::MAX; places * length], length)?;
    let messages = |size: u32| (0..size).flat_map(|rank| (0..EACH as u32).map(move |n| (rank, n)));
    let from = world.clone();
    group.task("receive").output((0..places).map(|place| values.tile(place))).spawn(
        move |tiles| {
            let requests = tiles.into_iter().zip(messages(size));
            let requests = requests.map(|(tile, (rank, n))| from.irecv(tile, Rank(rank), Tag(n)));
            iwaitall(requests).expect("in a task");
        },
    )?;
    let to = world.clone();
    group.task("send").spawn(move || {
        let send = |(other, n)| to.isend(vec![rank * 100 + n; length], Rank(other), Tag(n));
        iwaitall(messages(size).map(send)).expect("in a task");
    })?;
    let check = group.task("check").input(&values.all()).run(move |values| {
        for (tile, (rank, n)) in values.chunks(length).zip(messages(size)) {
            assert!(tile.iter().all(|word| *word == rank * 100 + n), "message {n} of {rank}");
        }
    })?;
    check.await?;
    nothing_is_left(&world).await;
    Ok(())
}

#[test]
fn a_task_has_hundreds_of_requests_with_64_ranks() {
    // Short ones, split ones, ones that are read and ones that are written.
    for length in [1, 40, 300, 600] {
        for workers in [1, 4] {
            let config = with_protocols(config(64, workers), 200, 0);
            run_well(config, move |world| all_to_all(world, length));
        }
    }
}

/// Ranks of a gather: more than a rank has receives for doorbells, all of which ring while it sleeps.
const CALLERS: u32 = 400;

#[test]
fn more_ranks_wake_one_than_it_has_doorbells() {
    for workers in [1, 2] {
        run_well(config(CALLERS, workers), async |world| {
            let rank = world.rank();
            for round in 0..3 {
                world.barrier().await?;
                if rank.0 > 0 {
                    world.send(vec![rank.0], Rank(0), Tag(round)).await?;
                    let (answer, _) = world.recv(vec![0u32], Rank(0), Tag(round)).await?;
                    assert_eq!(answer, [2 * rank.0]);
                    continue;
                }
                for caller in (1..CALLERS).rev() {
                    let (value, _) = world.recv(vec![0u32], Rank(caller), Tag(round)).await?;
                    world.send(vec![2 * value[0]], Rank(caller), Tag(round)).await?;
                }
            }
            nothing_is_left(&world).await;
            Ok(())
        });
    }
}
