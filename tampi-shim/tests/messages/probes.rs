use tampi_shim::{ANY_SOURCE, ANY_TAG, Communicator, Error, Rank, Tag};

use crate::common::{config, nothing_is_left, pattern, run_well, with_protocols};

/// Lengths that only the sender knows, by every protocol.
async fn unknown_lengths(world: Communicator) -> Result<(), Error> {
    let last = Rank(world.size() - 1);
    let lengths = [0usize, 5, 40, 41, 200, 201, 1000, 1001, 30_000];
    if world.rank() == Rank(0) {
        for (number, length) in lengths.into_iter().enumerate() {
            let tag = Tag(number as u32);
            drop(world.isend(pattern(number as u32, length), last, tag));
        }
    }
    if world.rank() == last {
        for (number, length) in lengths.into_iter().enumerate() {
            let status = world.probe(ANY_SOURCE, ANY_TAG).await?;
            assert_eq!((status.source, status.tag), (Rank(0), Tag(number as u32)));
            assert_eq!(status.bytes, length as u64);
            assert_eq!(world.iprobe(Rank(0), status.tag)?, Some(status));
            assert_eq!(world.iprobe(Rank(0), Tag(99))?, None);
            let buffer = vec![0u8; length];
            let (bytes, received) = if number % 2 == 0 {
                world.recv(buffer, status.source, status.tag).await?
            } else {
                let message = world.mprobe(ANY_SOURCE, ANY_TAG).await?;
                assert_eq!(message.status(), status);
                assert_eq!(world.iprobe(Rank(0), status.tag)?, None, "it is taken");
                message.recv(buffer).await?
            };
            assert_eq!(received, status);
            assert!(bytes == pattern(number as u32, length));
        }
    }
    nothing_is_left(&world).await;
    Ok(())
}

#[test]
fn a_probe_says_what_a_receive_would_take() {
    for ranks in [1, 2] {
        for workers in [1, 2, 8] {
            run_well(with_protocols(config(ranks, workers), 200, 1000), unknown_lengths);
        }
    }
}

/// A message that a matched probe has taken and nobody receives: its sender goes on.
async fn let_go(world: Communicator) -> Result<(), Error> {
    let me = world.rank();
    for length in [1usize, 100, 10_000] {
        let send = world.issend(vec![0u8; length], me, Tag(0));
        let message = loop {
            match world.improbe(ANY_SOURCE, Tag(0))? {
                Some(message) => break message,
                None => world.group().idle(std::time::Duration::from_micros(10)).await,
            }
        };
        drop(message);
        send.await?;
    }
    nothing_is_left(&world).await;
    Ok(())
}

#[test]
fn a_taken_message_may_be_dropped() {
    run_well(config(2, 2), let_go);
}
