use tampi_shim::{ANY_SOURCE, ANY_TAG, Communicator, Error, Rank, Select, Tag};

use crate::common::{config, nothing_is_left, run_well, with_protocols};

/// Messages of all protocols under one tag, taken with and without wildcards, early and late.
async fn mixed(world: Communicator) -> Result<(), Error> {
    const MESSAGES: u32 = 200;
    let length = |number: u32| [1, 3, 20, 100, 400, 3000][number as usize * 7 % 6];
    let last = Rank(world.size() - 1);
    let mut sends = Vec::new();
    if world.rank() == Rank(0) {
        for number in 0..MESSAGES {
            let words = vec![number; length(number)];
            sends.push(match number % 3 {
                0 => world.isend(words, last, Tag(5)),
                1 => world.ibsend(words, last, Tag(5)),
                _ => world.issend(words, last, Tag(5)),
            });
        }
    }
    if world.rank() == last {
        let receive = |number: u32| {
            let buffer = vec![0u32; 3000];
            match number / 7 % 4 {
                0 => world.irecv(buffer, Rank(0), Tag(5)),
                1 => world.irecv(buffer, ANY_SOURCE, Tag(5)),
                2 => world.irecv(buffer, Rank(0), ANY_TAG),
                _ => world.irecv(buffer, ANY_SOURCE, ANY_TAG),
            }
        };
        let mut number = 0;
        while number < MESSAGES {
            let at_once = (number % 40 + 1).min(MESSAGES - number);
            let receives: Vec<_> = (0..at_once).map(|ahead| receive(number + ahead)).collect();
            for request in receives {
                let (words, status) = request.await?;
                assert_eq!(status.elements::<u32>(), Some(length(number) as u64));
                assert!(words[..length(number)].iter().all(|word| *word == number), "{number}");
                number += 1;
            }
        }
    }
    for send in sends {
        send.await?;
    }
    nothing_is_left(&world).await;
    Ok(())
}

#[test]
fn messages_do_not_overtake_whatever_carries_them() {
    for ranks in [1, 2] {
        for workers in [1, 2, 8] {
            run_well(with_protocols(config(ranks, workers), 200, 2000), mixed);
            run_well(with_protocols(config(ranks, workers), 8, 0), mixed);
        }
    }
}

/// The same with several sources at once: order holds for each.
async fn from_many(world: Communicator) -> Result<(), Error> {
    const MESSAGES: u32 = 100;
    if world.rank() != Rank(0) {
        for number in 0..MESSAGES {
            world.send(vec![number; 1 + (number % 90) as usize], Rank(0), Tag(number % 3)).await?;
        }
        return Ok(());
    }
    let mut next = vec![[0, 1, 2]; world.size() as usize];
    for _ in 0..MESSAGES * (world.size() - 1) {
        let (words, status) = world.recv(vec![0u32; 90], ANY_SOURCE, ANY_TAG).await?;
        let next = &mut next[status.source.0 as usize][status.tag.0 as usize];
        assert_eq!(words[0], *next);
        *next += 3;
    }
    nothing_is_left(&world).await;
    Ok(())
}

#[test]
fn each_source_and_tag_keeps_its_order() {
    for ranks in [2, 9] {
        for workers in [1, 2, 8] {
            run_well(with_protocols(config(ranks, workers), 64, 128), from_many);
        }
    }
}

/// A task that waits for a short message, after a receive of the same was posted, and after one of
/// the same was found.
async fn awaited(world: Communicator) -> Result<(), Error> {
    const ROUNDS: u64 = 3_000;
    let (peer, tag) = (Rank(1 - world.rank().0), Tag(0));
    for round in 0..ROUNDS {
        let number = |index: u64| vec![10 * round + index];
        if world.rank() == Rank(0) {
            for index in 0..4 {
                world.send(number(index), peer, tag).await?;
            }
            world.recv(vec![0u64], peer, Tag(1)).await?;
        } else {
            let receive = |source, tag| world.irecv(vec![0u64], source, tag);
            let posted = match round % 3 {
                0 => receive(Select::Only(peer), Select::Only(tag)),
                1 => receive(ANY_SOURCE, Select::Only(tag)),
                _ => receive(Select::Only(peer), ANY_TAG),
            };
            assert_eq!(world.recv(vec![0u64], peer, tag).await?.0, number(1));
            assert_eq!(posted.await?.0, number(0));
            // Leaves the third where it was found, while the fourth may still be in the ring.
            world.probe(peer, tag).await?;
            assert_eq!(world.recv(vec![0u64], peer, tag).await?.0, number(2));
            assert_eq!(world.recv(vec![0u64], peer, tag).await?.0, number(3));
            world.send(number(0), peer, Tag(1)).await?;
        }
    }
    nothing_is_left(&world).await;
    Ok(())
}

#[test]
fn an_awaited_receive_does_not_overtake_a_posted_one() {
    for workers in [1, 2, 8] {
        run_well(config(2, workers), awaited);
    }
}

/// Receives that start when their messages have come, with others before them in the ring.
async fn late(world: Communicator) -> Result<(), Error> {
    let me = Rank(0);
    for (value, tag) in [(0u64, 0), (1, 1), (2, 0), (3, 0)] {
        world.send(vec![value], me, Tag(tag)).await?;
    }
    for (expected, tag) in [(1u64, 1), (0, 0), (2, 0), (3, 0)] {
        let receive = world.irecv(vec![0u64; 2], me, Tag(tag));
        assert!(receive.has_ended(), "message {expected} is there");
        let (words, status) = receive.await?;
        assert_eq!((words[0], status.bytes, status.tag), (expected, 8, Tag(tag)));
    }
    nothing_is_left(&world).await;
    Ok(())
}

#[test]
fn a_receive_ends_as_it_starts_if_its_message_has_come() {
    for workers in [1, 2, 8] {
        run_well(config(1, workers), late);
    }
}
