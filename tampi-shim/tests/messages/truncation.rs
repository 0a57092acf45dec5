use tampi_shim::{Communicator, Error, Rank, Tag};

use crate::common::{config, nothing_is_left, run, with_protocols};

/// A message one byte longer than its buffer is an error of the receive, by each protocol, early
/// and late. The send ends well, and the next message is not disturbed.
async fn one_too_long(world: Communicator) -> Result<(), Error> {
    for length in [1usize, 40, 41, 200, 201, 1000, 1001, 50_000] {
        for early in [true, false] {
            if world.rank() == Rank(0) {
                if !early {
                    world.recv(vec![0u8; 0], Rank(1), Tag(1)).await?;
                }
                let send = world.issend(vec![1u8; length], Rank(1), Tag(0));
                let next = world.isend(vec![2u8; length], Rank(1), Tag(0));
                if early {
                    world.send(vec![0u8; 0], Rank(1), Tag(1)).await?;
                }
                assert_eq!(send.await?.0.len(), length);
                next.await?;
                continue;
            }
            if early {
                world.recv(vec![0u8; 0], Rank(0), Tag(1)).await?;
            }
            let receive = world.irecv(vec![0u8; length - 1], Rank(0), Tag(0));
            let next = world.irecv(vec![0u8; length], Rank(0), Tag(0));
            if !early {
                world.send(vec![0u8; 0], Rank(0), Tag(1)).await?;
            }
            let error = receive.await.expect_err("one byte too long");
            let Error::Truncated { source_rank: Rank(0), tag: Tag(0), sent, room } = error else {
                panic!("{error}");
            };
            assert_eq!((sent, room), (length as u64, length as u64 - 1));
            assert_eq!(next.await?.0, vec![2; length]);
        }
    }
    nothing_is_left(&world).await;
    Ok(())
}

#[test]
fn a_message_longer_than_its_buffer_says_both_lengths() {
    for workers in [1, 2] {
        run(with_protocols(config(2, workers), 200, 1000), one_too_long).unwrap();
    }
}
