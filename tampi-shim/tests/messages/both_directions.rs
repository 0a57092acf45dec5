use tampi_shim::{Communicator, Error, Rank, Tag};

use crate::common::{config, nothing_is_left, pattern, run_well, with_protocols};

/// Everybody sends to everybody, itself too, many messages before it receives any.
async fn all_to_all(world: Communicator) -> Result<(), Error> {
    const EACH: u32 = 12;
    let length = |message: u32| [0, 8, 100, 700, 5000][message as usize % 5];
    let mut sends = Vec::new();
    for message in 0..EACH {
        for to in 0..world.size() {
            let bytes = pattern(world.rank().0 * 1000 + message, length(message));
            sends.push(world.isend(bytes, Rank(to), Tag(message)));
        }
    }
    for message in (0..EACH).rev() {
        for from in 0..world.size() {
            let buffer = vec![0u8; length(message)];
            let (bytes, _) = world.recv(buffer, Rank(from), Tag(message)).await?;
            assert!(bytes == pattern(from * 1000 + message, length(message)));
        }
    }
    for send in sends {
        send.await?;
    }
    nothing_is_left(&world).await;
    Ok(())
}

#[test]
fn everybody_sends_before_anybody_receives() {
    for ranks in [1, 2, 8, 32] {
        for workers in [1, 2, 8] {
            run_well(with_protocols(config(ranks, workers), 200, 1000), all_to_all);
        }
    }
}

/// Two ranks send each other long messages with blocking sends that a task each waits in.
async fn head_on(world: Communicator) -> Result<(), Error> {
    let other = Rank(world.size() - 1 - world.rank().0);
    for round in 0..20 {
        let send = world.isend(pattern(round, 50_000), other, Tag(0));
        let (bytes, _) = world.recv(vec![0u8; 50_000], other, Tag(0)).await?;
        assert!(bytes == pattern(round, 50_000));
        send.await?;
    }
    nothing_is_left(&world).await;
    Ok(())
}

#[test]
fn long_messages_meet() {
    for workers in [1, 2, 8] {
        run_well(config(2, workers), head_on);
        run_well(config(1, workers), head_on);
    }
}
