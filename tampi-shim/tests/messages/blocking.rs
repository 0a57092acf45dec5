use tampi_shim::{ANY_SOURCE, ANY_TAG, Communicator, Error, Rank, Tag};

use crate::common::run_on_workers;

async fn ring(world: Communicator) -> Result<(), Error> {
    let (rank, size) = (world.rank().0, world.size());
    let (left, right) = (Rank((rank + size - 1) % size), Rank((rank + 1) % size));
    for round in 0..10 {
        let receive = world.irecv(vec![0u32; 3], left, Tag(round));
        let sent = world.send(vec![rank, round], right, Tag(round)).await?;
        assert_eq!(sent, [rank, round]);
        let (received, status) = receive.await?;
        assert_eq!(received, [left.0, round, 0]);
        assert_eq!((status.source, status.tag), (left, Tag(round)));
        assert_eq!((status.bytes, status.elements::<u32>()), (8, Some(2)));
    }
    Ok(())
}

#[test]
fn a_ring_passes_numbers() {
    for ranks in [1, 2, 3, 7, 32] {
        run_on_workers(ranks, ring);
    }
}

async fn gather_at_first(world: Communicator) -> Result<(), Error> {
    if world.rank() != Rank(0) {
        world.ssend(vec![world.rank().0], Rank(0), Tag(world.rank().0)).await?;
        return Ok(());
    }
    let mut seen = vec![false; world.size() as usize];
    for _ in 1..world.size() {
        let (value, status) = world.recv(vec![0u32], ANY_SOURCE, ANY_TAG).await?;
        assert_eq!((Rank(value[0]), Tag(value[0])), (status.source, status.tag));
        assert!(!std::mem::replace(&mut seen[value[0] as usize], true));
    }
    Ok(())
}

#[test]
fn synchronous_sends_reach_a_wildcard() {
    for ranks in [1, 2, 9] {
        run_on_workers(ranks, gather_at_first);
    }
}
