use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tampi_shim::{Communicator, Error, Rank, Request, Tag, iwait, iwaitall};

use crate::common::{config, nothing_is_left, run_on_workers, run_well};

const TAG: Tag = Tag(1);

/// Short messages to rank 1, one after another.
fn burst(world: &Communicator, numbers: std::ops::Range<u64>) -> Vec<Request<Vec<u64>>> {
    numbers.map(|number| world.isend(vec![number], Rank(1), TAG)).collect()
}

async fn receive(world: &Communicator, numbers: std::ops::Range<u64>) -> Result<(), Error> {
    for number in numbers {
        let (found, _) = world.recv(vec![0u64], Rank(0), TAG).await?;
        assert_eq!(found, [number]);
    }
    Ok(())
}

#[test]
fn a_burst_arrives_though_its_sender_waits_for_something_else() {
    for workers in [1, 2, 8] {
        let arrived = Arc::new(AtomicBool::new(false));
        run_well(config(2, workers), move |world| {
            let arrived = Arc::clone(&arrived);
            async move {
                if world.rank() == Rank(0) {
                    let requests = burst(&world, 0..5);
                    while !arrived.load(Ordering::SeqCst) {
                        world.group().wait_for(Duration::from_micros(50)).await;
                    }
                    for request in requests {
                        request.await?;
                    }
                } else {
                    receive(&world, 0..5).await?;
                    arrived.store(true, Ordering::SeqCst);
                }
                nothing_is_left(&world).await;
                Ok(())
            }
        });
    }
}

/// Every way to see to the requests of a burst.
async fn seen_to(world: Communicator) -> Result<(), Error> {
    const ROUNDS: u64 = 60;
    let length = |round: u64| round * 7 % 40;
    if world.rank() == Rank(1) {
        receive(&world, 0..(0..ROUNDS).map(length).sum()).await?;
        return Ok(());
    }
    let mut next = 0;
    for round in 0..ROUNDS {
        let numbers = next..next + length(round);
        next = numbers.end;
        match round % 4 {
            0 => {
                for request in burst(&world, numbers) {
                    request.await?;
                }
            }
            1 => drop(burst(&world, numbers)),
            2 => {
                let sender = world.clone();
                let bound =
                    world.group().task("burst").run(move || iwaitall(burst(&sender, numbers)));
                bound?.await??;
            }
            _ => burst(&world, numbers).into_iter().rev().try_for_each(iwait)?,
        }
    }
    Ok(())
}

#[test]
fn bursts_arrive_in_order_however_their_requests_are_seen_to() {
    run_on_workers(2, seen_to);
}

/// More than a ring holds, before the receiver takes any.
async fn ahead(world: Communicator) -> Result<(), Error> {
    const MESSAGES: u64 = 1000;
    match world.rank() {
        Rank(0) => {
            let requests = burst(&world, 0..MESSAGES);
            world.recv(Vec::<u8>::new(), Rank(1), TAG).await?;
            for request in requests {
                request.await?;
            }
        }
        _ => {
            receive(&world, 0..MESSAGES).await?;
            world.send(Vec::<u8>::new(), Rank(0), TAG).await?;
        }
    }
    nothing_is_left(&world).await;
    Ok(())
}

#[test]
fn a_burst_longer_than_the_ring_arrives() {
    run_on_workers(2, ahead);
}
