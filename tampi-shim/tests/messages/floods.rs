use tampi_shim::{ANY_SOURCE, Communicator, Error, Rank, Tag};

use crate::common::{config, nothing_is_left, run, with_protocols};

const MESSAGES: u32 = 3000;

/// Everybody floods rank 0, which takes first what was sent last.
async fn many_to_one(world: Communicator) -> Result<u64, Error> {
    if world.rank() == Rank(0) {
        for _ in 1..world.size() {
            world.recv(vec![0u32; 1], ANY_SOURCE, Tag(1)).await?;
        }
        let mut next = vec![0; world.size() as usize];
        for _ in 0..MESSAGES * (world.size() - 1) {
            let (words, status) = world.recv(vec![0u32; 30], ANY_SOURCE, Tag(0)).await?;
            let next = &mut next[status.source.0 as usize];
            assert_eq!(words[0], *next, "from {}", status.source);
            *next += 1;
        }
    } else {
        let mut sends = Vec::new();
        for message in 0..MESSAGES {
            let words = 1 + (message % 30) as usize;
            sends.push(world.isend(vec![message; words], Rank(0), Tag(0)));
        }
        sends.push(world.isend(vec![0], Rank(0), Tag(1)));
        for send in sends {
            send.await?;
        }
    }
    nothing_is_left(&world).await;
    Ok(world.statistics().over_quota)
}

#[test]
fn a_flood_beyond_the_memory_cap_arrives_in_order() {
    for (ranks, workers) in [(2, 1), (2, 2), (8, 2), (8, 8)] {
        let mut config = with_protocols(config(ranks, workers), 200, 0);
        config.unexpected_limit = 64 << 10;
        let over_quota = run(config, many_to_one).unwrap();
        // 64 KiB are 1024 cells, fewer than the messages of one rank.
        assert!(over_quota[1..].iter().all(|&count| count > 0), "{over_quota:?}");
    }
}

#[test]
fn a_flood_within_the_cap_stays_short() {
    let config = with_protocols(config(2, 2), 200, 0);
    assert_eq!(run(config, many_to_one).unwrap(), [0, 0]);
}

/// A window of messages, all of them received in advance.
async fn windows(world: Communicator) -> Result<u64, Error> {
    const WINDOW: u32 = 1000;
    for round in 0..20 {
        let tag = Tag(0);
        if world.rank() == Rank(0) {
            let receives: Vec<_> =
                (0..WINDOW).map(|_| world.irecv(vec![0u32], Rank(1), tag)).collect();
            world.send(vec![0u8], Rank(1), Tag(1)).await?;
            for (expected, receive) in receives.into_iter().enumerate() {
                assert_eq!(receive.await?.0, [round * WINDOW + expected as u32]);
            }
        } else {
            world.recv(vec![0u8], Rank(0), Tag(1)).await?;
            let numbers = (0..WINDOW).map(|number| round * WINDOW + number);
            let sends: Vec<_> =
                numbers.map(|number| world.isend(vec![number], Rank(0), tag)).collect();
            for send in sends {
                send.await?;
            }
        }
    }
    nothing_is_left(&world).await;
    Ok(world.statistics().unexpected)
}

#[test]
fn more_receives_than_cells() {
    for workers in [1, 2] {
        let unexpected = run(config(2, workers), windows).unwrap();
        assert!(unexpected[0] == 0, "all receives were there before: {unexpected:?}");
    }
}
