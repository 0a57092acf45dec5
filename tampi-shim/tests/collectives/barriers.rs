use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tampi_shim::{Communicator, Error};

use crate::common::run;

/// Nobody passes a barrier that somebody has not reached, for several rounds.
async fn rounds(world: Communicator, arrived: Arc<AtomicU32>) -> Result<(), Error> {
    for round in 1..=20 {
        arrived.fetch_add(1, Ordering::Relaxed);
        world.barrier().await?;
        assert!(arrived.load(Ordering::Relaxed) >= round * world.size());
    }
    Ok(())
}

/// The same, with both halves apart.
async fn split_rounds(world: Communicator, arrived: Arc<AtomicU32>) -> Result<(), Error> {
    for round in 1..=20 {
        arrived.fetch_add(1, Ordering::Relaxed);
        let arrival = world.arrive();
        // What is between the halves may use the communicator.
        world.allreduce(vec![1u32], tampi_shim::operator::Sum).await?;
        arrival.wait().await?;
        assert!(arrived.load(Ordering::Relaxed) >= round * world.size());
    }
    Ok(())
}

#[test]
fn nobody_passes_before_all_have_arrived() {
    for ranks in 1..=9 {
        let arrived = Arc::new(AtomicU32::new(0));
        run(ranks, move |world| rounds(world, Arc::clone(&arrived))).expect("the program");
    }
}

#[test]
fn a_rank_can_do_something_between_arriving_and_waiting() {
    for ranks in 1..=9 {
        let arrived = Arc::new(AtomicU32::new(0));
        run(ranks, move |world| split_rounds(world, Arc::clone(&arrived))).expect("the program");
    }
}

#[test]
fn an_arrival_is_not_complete_while_somebody_is_missing() {
    run(3, async |world| {
        let late = world.rank().0 == 2;
        let arrival = (!late).then(|| world.arrive());
        if let Some(arrival) = &arrival {
            assert!(!arrival.is_complete());
            world.send(vec![0u8; 0], tampi_shim::Rank(2), tampi_shim::Tag(0)).await?;
        } else {
            for source in [0, 1].map(tampi_shim::Rank) {
                world.recv(vec![0u8; 0], source, tampi_shim::Tag(0)).await?;
            }
        }
        match arrival {
            Some(arrival) => arrival.wait().await,
            None => world.barrier().await,
        }
    })
    .expect("the program");
}
