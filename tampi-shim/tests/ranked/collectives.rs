//! Collectives, against what every rank can compute alone.

use tampi_shim::operator::{Max, Sum};
use tampi_shim::{Communicator, Error, Rank, Tag};

use crate::harness::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    every_collective_gives_what_it_should,
    blocks_of_any_length_move,
    an_operator_of_the_program_keeps_the_order_of_ranks,
    collectives_and_messages_do_not_mix,
    collectives_are_under_way_beside_each_other,
];

/// Element `n` of what `rank` gives.
fn element(rank: u32, n: usize) -> u64 {
    u64::from(rank) * 1000 + n as u64
}

fn of(rank: u32, len: usize) -> Vec<u64> {
    (0..len).map(|n| element(rank, n)).collect()
}

async fn every_collective_gives_what_it_should(world: Communicator) -> Result<(), Error> {
    let (rank, size) = (world.rank().0, world.size());
    let ranks = 0..size;
    let total = |len: usize, of_rank: &dyn Fn(u32) -> bool| -> Vec<u64> {
        (0..len)
            .map(|n| ranks.clone().filter(|r| of_rank(*r)).map(|r| element(r, n)).sum())
            .collect()
    };
    for len in [0, 5, 3_000] {
        for root in ranks.clone() {
            let all: Vec<u64> = ranks.clone().flat_map(|r| of(r, len)).collect();
            let given = if rank == root { of(root, len) } else { vec![0; len] };
            assert!(world.broadcast(given, Rank(root)).await? == of(root, len));
            let room = vec![0; if rank == root { all.len() } else { 0 }];
            let (_, gathered) = world.gather(of(rank, len), room, Rank(root)).await?;
            assert!(rank != root || gathered == all);
            let parts = if rank == root { all.clone() } else { Vec::new() };
            let (_, part) = world.scatter(parts, vec![0; len], Rank(root)).await?;
            assert!(part == of(rank, len));
            let sum = world.reduce(of(rank, len), Sum, Rank(root)).await?;
            assert!(rank != root || sum == total(len, &|_| true));
        }
        let all: Vec<u64> = ranks.clone().flat_map(|r| of(r, len)).collect();
        let (_, gathered) = world.allgather(of(rank, len), vec![0; all.len()]).await?;
        assert!(gathered == all);
        assert!(world.allreduce(of(rank, len), Sum).await? == total(len, &|_| true));
        assert!(world.allreduce(of(rank, len), Max).await? == of(size - 1, len));
        assert!(world.scan(of(rank, len), Sum).await? == total(len, &|r| r <= rank));
        let before = world.exscan(of(rank, len), Sum).await?;
        assert!(rank == 0 || before == total(len, &|r| r < rank));
        let to_all: Vec<u64> = ranks.clone().flat_map(|_| of(rank, len)).collect();
        let (_, from_all) = world.alltoall(to_all, vec![0; all.len()]).await?;
        assert!(from_all == all);
    }
    world.barrier().await
}

/// Rank `r` gives `r` elements, so rank 0 none.
async fn blocks_of_any_length_move(world: Communicator) -> Result<(), Error> {
    let (rank, size) = (world.rank().0, world.size());
    let counts: Vec<usize> = (0..size as usize).collect();
    let len = counts[rank as usize];
    let all: Vec<u64> = (0..size).flat_map(|from| of(from, from as usize)).collect();
    for root in (0..size).map(Rank) {
        let room = vec![0; if world.rank() == root { all.len() } else { 0 }];
        let (_, gathered) = world.gatherv(of(rank, len), room, &counts, root).await?;
        assert!(world.rank() != root || gathered == all);
        let (_, piece) = world.scatterv(gathered, vec![0; len], &counts, root).await?;
        assert_eq!(piece, of(rank, len));
    }
    let (_, gathered) = world.allgatherv(of(rank, len), vec![0; all.len()], &counts).await?;
    assert_eq!(gathered, all);
    // Rank `r` gives everybody `r` elements.
    let (sent, same) = (of(rank, len).repeat(size as usize), vec![len; size as usize]);
    let (_, received) = world.alltoallv((sent, &same), (vec![0; all.len()], &counts)).await?;
    assert_eq!(received, all);
    let room = vec![0; len];
    let (_, block) = world.reduce_scatter(all.clone(), room, &counts, Max).await?;
    assert_eq!(block, of(rank, len));
    Ok(())
}

/// `x -> slope * x + offset`: to apply one after the other is not commutative.
async fn an_operator_of_the_program_keeps_the_order_of_ranks(
    world: Communicator,
) -> Result<(), Error> {
    let then = |first: [u64; 2], second: [u64; 2]| {
        let offset = second[0].wrapping_mul(first[1]).wrapping_add(second[1]);
        [second[0].wrapping_mul(first[0]), offset]
    };
    let own = |rank: u32, n: usize| [2 * u64::from(rank) + 3, n as u64 + u64::from(rank)];
    let (rank, size) = (world.rank().0, world.size());
    for len in [1usize, 9_000] {
        let mine: Vec<_> = (0..len).map(|n| own(rank, n)).collect();
        let up_to = |last: u32| -> Vec<[u64; 2]> {
            (0..len).map(|n| (0..=last).map(|r| own(r, n)).reduce(then).expect("one")).collect()
        };
        assert!(world.allreduce(mine.clone(), then).await? == up_to(size - 1));
        assert!(world.scan(mine.clone(), then).await? == up_to(rank));
        let before = world.exscan(mine.clone(), then).await?;
        assert!(before == if rank > 0 { up_to(rank - 1) } else { mine.clone() });
        let last = world.reduce(mine.clone(), then, Rank(size - 1)).await?;
        assert!(last == if rank == size - 1 { up_to(rank) } else { mine });
    }
    Ok(())
}

async fn collectives_and_messages_do_not_mix(world: Communicator) -> Result<(), Error> {
    let next = Rank((world.rank().0 + 1) % world.size());
    let last = Rank((world.rank().0 + world.size() - 1) % world.size());
    let sends: Vec<_> = (0..4).map(|n| world.isend(vec![n; 2], next, Tag(n))).collect();
    for n in 0..4 {
        assert_eq!(world.allreduce(vec![1u32], Sum).await?, [world.size()]);
        let (message, _) = world.recv(vec![9u32; 2], last, tampi_shim::ANY_TAG).await?;
        assert_eq!(message, [n; 2]);
    }
    for send in sends {
        send.await?;
    }
    world.barrier().await
}

async fn collectives_are_under_way_beside_each_other(world: Communicator) -> Result<(), Error> {
    let started: Vec<_> =
        (0..10u64).map(|n| world.iallreduce(vec![n, u64::from(world.rank().0)], Sum)).collect();
    let size = u64::from(world.size());
    for (request, n) in started.into_iter().zip(0..) {
        assert_eq!(request.await?.0, [n * size, size * (size - 1) / 2]);
    }
    Ok(())
}
