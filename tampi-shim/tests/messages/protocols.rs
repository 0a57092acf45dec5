use tampi_shim::{Communicator, Error, Rank, Statistics, Tag};

use crate::common::{config, nothing_is_left, pattern, run, with_protocols};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Standard,
    Synchronous,
    Buffered,
}

/// Rank 0 sends one message, to rank 1 or to itself, before its receive or after it.
async fn one(
    world: Communicator,
    (mode, length, early): (Mode, usize, bool),
) -> Result<Statistics, Error> {
    let target = Rank(world.size() - 1);
    let go = Tag(1);
    let (is_sender, is_target) = (world.rank() == Rank(0), world.rank() == target);
    let before = world.statistics();
    let mut receive = None;
    if is_target && !early {
        receive = Some(world.irecv(vec![0u8; length + 1], Rank(0), Tag(0)));
        drop(world.isend(vec![0u8; 0], Rank(0), go));
    }
    if is_sender {
        if !early {
            world.recv(vec![0u8; 0], target, go).await?;
        }
        let bytes = pattern(7, length);
        let send = match mode {
            Mode::Standard => world.isend(bytes, target, Tag(0)),
            Mode::Synchronous => world.issend(bytes, target, Tag(0)),
            Mode::Buffered => world.ibsend(bytes, target, Tag(0)),
        };
        if early {
            assert!(mode != Mode::Buffered || send.has_ended());
            drop(world.isend(vec![0u8; 0], target, go));
        }
        if early && is_target {
            receive = Some(world.irecv(vec![0u8; length + 1], Rank(0), Tag(0)));
        }
        if let Some(receive) = receive.take() {
            check(&receive.await?, length);
        }
        let (bytes, status) = send.await?;
        assert_eq!((bytes.len(), status.bytes), (length, length as u64));
        if early && is_target {
            world.recv(vec![0u8; 0], Rank(0), go).await?;
        }
    } else if is_target {
        if early {
            world.recv(vec![0u8; 0], Rank(0), go).await?;
            receive = Some(world.irecv(vec![0u8; length + 1], Rank(0), Tag(0)));
        }
        if let Some(receive) = receive.take() {
            check(&receive.await?, length);
        }
    }
    nothing_is_left(&world).await;
    let mut after = world.statistics();
    after.eager -= before.eager;
    Ok(after)
}

fn check((received, status): &(Vec<u8>, tampi_shim::Status), length: usize) {
    assert_eq!(status.bytes, length as u64);
    assert!(received[..length] == pattern(7, length)[..], "the bytes");
    assert_eq!(received[length], 0, "what lies behind the message");
}

const EAGER: usize = 200;
const LAZY: usize = 1000;

#[test]
fn each_protocol_carries_what_it_is_for() {
    let lengths = [0, 1, 39, 40, 41, 64, EAGER - 1, EAGER, EAGER + 1];
    let longer = [LAZY - 1, LAZY, LAZY + 1, 1999, 2000, 100_000];
    for (ranks, workers) in [(1, 1), (2, 1), (2, 2)] {
        for mode in [Mode::Standard, Mode::Synchronous, Mode::Buffered] {
            for length in lengths.into_iter().chain(longer) {
                for early in [true, false] {
                    let config = with_protocols(config(ranks, workers), EAGER, LAZY);
                    let results = run(config, move |world| one(world, (mode, length, early)));
                    let what = format!("{ranks} ranks, {mode:?}, {length} bytes, early {early}");
                    let counts = results.unwrap_or_else(|error| panic!("{what}: {error}"))[0];
                    let synchronous = mode == Mode::Synchronous;
                    // Each program has one empty message more from rank 0, or from rank 1.
                    let in_one_cell = length <= 40 && !synchronous;
                    let split = !in_one_cell && length <= EAGER;
                    let lazy = length > EAGER
                        && (mode == Mode::Buffered || (length <= LAZY && !synchronous));
                    assert_eq!(counts.eager_split, u64::from(split), "{what}: {counts:?}");
                    assert_eq!(counts.lazy, u64::from(lazy), "{what}: {counts:?}");
                    let written = !early && length >= 2000 && mode != Mode::Buffered;
                    assert_eq!(counts.written, u64::from(written), "{what}: {counts:?}");
                    let rendezvous = length > EAGER && !lazy && !written;
                    assert_eq!(counts.rendezvous, u64::from(rendezvous), "{what}: {counts:?}");
                }
            }
        }
    }
}

#[test]
fn longer_than_the_ring_is_eager_never() {
    let config = with_protocols(config(2, 2), usize::MAX, 0);
    let counts = run(config, |world| one(world, (Mode::Standard, 20_000, true))).unwrap()[0];
    assert_eq!((counts.eager_split, counts.rendezvous), (0, 1));
}

#[test]
fn a_buffered_send_without_room_is_refused() {
    let mut config = with_protocols(config(2, 2), EAGER, LAZY);
    config.buffer_limit = 5000;
    let program = async |world: Communicator| {
        if world.rank() == Rank(0) {
            world.bsend(vec![0u8; 3000], Rank(1), Tag(0)).await?;
            let refused = world.bsend(vec![0u8; 2001], Rank(1), Tag(0)).await;
            assert!(
                matches!(refused, Err(Error::NoBufferSpace { bytes: 2001, room: 2000 })),
                "{refused:?}"
            );
            world.bsend(vec![0u8; 2000], Rank(1), Tag(0)).await?;
            world.send(vec![0u8; 0], Rank(1), Tag(1)).await?;
        } else {
            world.recv(vec![0u8; 0], Rank(0), Tag(1)).await?;
            world.recv(vec![0u8; 3000], Rank(0), Tag(0)).await?;
            world.recv(vec![0u8; 2000], Rank(0), Tag(0)).await?;
        }
        nothing_is_left(&world).await;
        Ok(())
    };
    run(config, program).unwrap();
}
