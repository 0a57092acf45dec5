//! Matching of messages to receives and probes.

use tampi_shim::{ANY_SOURCE, ANY_TAG, Communicator, Error, Rank, Tag};

use crate::harness::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    synchronous_sends_reach_a_wildcard,
    messages_do_not_overtake,
    a_probe_sees_what_a_receive_takes,
    a_matched_message_is_taken_from_all_others,
    a_message_longer_than_its_buffer_is_an_error,
    a_cancelled_receive_ends_without_a_message,
];

async fn synchronous_sends_reach_a_wildcard(world: Communicator) -> Result<(), Error> {
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

/// Short and long messages of one source and tag, to receives with and without wildcards.
async fn messages_do_not_overtake(world: Communicator) -> Result<(), Error> {
    const COUNT: usize = 40;
    let length = |n: usize| if n.is_multiple_of(3) { 20_000 } else { 1 };
    let last = Rank(world.size() - 1);
    let sends: Vec<_> = if world.rank() == last {
        let send = |n| world.isend(vec![n as u64; length(n)], Rank(0), Tag(1));
        (0..COUNT).map(send).collect()
    } else {
        Vec::new()
    };
    if world.rank() == Rank(0) {
        for n in 0..COUNT {
            let buffer = vec![u64::MAX; 20_000];
            let (received, status) = match n % 3 {
                0 => world.recv(buffer, last, Tag(1)).await?,
                1 => world.recv(buffer, ANY_SOURCE, Tag(1)).await?,
                _ => world.recv(buffer, last, ANY_TAG).await?,
            };
            assert_eq!(status.elements::<u64>(), Some(length(n) as u64));
            assert_eq!(received[0], n as u64);
        }
    }
    for send in sends {
        send.await?;
    }
    Ok(())
}

async fn a_probe_sees_what_a_receive_takes(world: Communicator) -> Result<(), Error> {
    let (own, next) = (world.rank(), Rank((world.rank().0 + 1) % world.size()));
    let before = Rank((own.0 + world.size() - 1) % world.size());
    assert_eq!(world.iprobe(ANY_SOURCE, Tag(77))?, None);
    let send = world.isend(vec![own.0; 9], next, Tag(5));
    let status = world.probe(ANY_SOURCE, ANY_TAG).await?;
    assert_eq!((status.source, status.tag, status.bytes), (before, Tag(5), 36));
    assert_eq!(world.iprobe(before, Tag(5))?, Some(status));
    let length = status.elements::<u32>().expect("whole numbers") as usize;
    let (received, _) = world.recv(vec![0u32; length], status.source, status.tag).await?;
    assert_eq!(received, [before.0; 9]);
    send.await?;
    Ok(())
}

async fn a_matched_message_is_taken_from_all_others(world: Communicator) -> Result<(), Error> {
    let next = Rank((world.rank().0 + 1) % world.size());
    let sends: Vec<_> = (0..3).map(|n| world.isend(vec![n; 50_000], next, Tag(6))).collect();
    let first = world.mprobe(ANY_SOURCE, Tag(6)).await?;
    let second = world.mprobe(ANY_SOURCE, Tag(6)).await?;
    assert_eq!(second.status().bytes, 200_000);
    let (received, _) = world.recv(vec![9u32; 50_000], ANY_SOURCE, Tag(6)).await?;
    assert_eq!(received[49_999], 2);
    assert!(world.improbe(ANY_SOURCE, Tag(6))?.is_none());
    let (received, status) = first.recv(vec![9u32; 50_001]).await?;
    assert_eq!((received[49_999], received[50_000]), (0, 9));
    assert_eq!(status.tag, Tag(6));
    drop(second);
    for send in sends {
        send.await?;
    }
    Ok(())
}

async fn a_message_longer_than_its_buffer_is_an_error(world: Communicator) -> Result<(), Error> {
    let (own, size) = (world.rank().0, world.size());
    let (next, before) = (Rank((own + 1) % size), Rank((own + size - 1) % size));
    for length in [5, 100_000] {
        let send = world.isend(vec![1u8; length], next, Tag(2));
        let receive = world.irecv(vec![0u8; length - 1], ANY_SOURCE, ANY_TAG);
        match receive.await {
            Err(Error::Truncated { source_rank, tag, sent, room }) => {
                assert_eq!((source_rank, tag), (before, Tag(2)));
                assert_eq!((sent, room), (length as u64, length as u64 - 1));
            }
            other => panic!("{other:?}"),
        }
        send.await?;
    }
    // What comes next is not touched by it.
    let receive = world.irecv(vec![0u8; 3], before, Tag(3));
    world.send(vec![4u8; 3], next, Tag(3)).await?;
    assert_eq!(receive.await?.0, [4; 3]);
    Ok(())
}

async fn a_cancelled_receive_ends_without_a_message(world: Communicator) -> Result<(), Error> {
    let next = Rank((world.rank().0 + 1) % world.size());
    let never = world.irecv(vec![7u8; 4], ANY_SOURCE, Tag(99));
    let other = world.irecv(vec![0u8; 4], ANY_SOURCE, Tag(1));
    never.cancel();
    let (buffer, status) = never.await?;
    assert!(status.is_cancelled());
    assert_eq!(buffer, [7; 4]);
    world.send(vec![1u8; 4], next, Tag(1)).await?;
    let (buffer, status) = other.await?;
    assert!(!status.is_cancelled());
    assert_eq!(buffer, [1; 4]);
    Ok(())
}
