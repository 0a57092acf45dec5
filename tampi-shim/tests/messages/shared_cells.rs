//! Short messages that follow each other may share a cell of the ring.

use std::collections::VecDeque;

use proptest::prelude::*;
use tampi_shim::{ANY_SOURCE, ANY_TAG, Communicator, Error, Rank, Tag};

use crate::common::{config, nothing_is_left, pattern, run_well};

/// Tag and length of each message, and how many of them are sent or received at a time.
#[derive(Clone, Debug)]
struct Program {
    messages: Vec<(u32, usize)>,
    sent_at_once: usize,
    received_at_once: usize,
    wildcards: bool,
    receives_first: bool,
    unexpected_limit: usize,
}

const GO: Tag = Tag(100);

/// Rank 0 sends all messages, which rank 1 receives in order.
async fn carry(world: Communicator, program: Program) -> Result<(), Error> {
    match world.rank() {
        Rank(0) => send(&world, &program).await?,
        _ => receive(&world, &program).await?,
    }
    nothing_is_left(&world).await;
    Ok(())
}

async fn send(world: &Communicator, program: &Program) -> Result<(), Error> {
    world.recv(Vec::<u8>::new(), Rank(1), GO).await?;
    let numbered: Vec<_> = (0..).zip(&program.messages).collect();
    for some in numbered.chunks(program.sent_at_once) {
        let sends = some.iter().map(|&(number, &(tag, length))| {
            world.isend(pattern(number, length), Rank(1), Tag(tag))
        });
        for send in sends.collect::<Vec<_>>() {
            send.await?;
        }
    }
    Ok(())
}

async fn receive(world: &Communicator, program: &Program) -> Result<(), Error> {
    let start = |tag: u32| match program.wildcards {
        true => world.irecv(vec![0u8; 64], ANY_SOURCE, ANY_TAG),
        false => world.irecv(vec![0u8; 64], Rank(0), Tag(tag)),
    };
    let ahead = if program.receives_first { program.messages.len() } else { 0 };
    let mut receives: VecDeque<_> =
        program.messages[..ahead].iter().map(|&(tag, _)| start(tag)).collect();
    world.send(Vec::<u8>::new(), Rank(0), GO).await?;
    for (number, &(tag, length)) in (0..).zip(&program.messages) {
        if receives.is_empty() {
            let some = program.messages[number as usize..].iter().take(program.received_at_once);
            receives.extend(some.map(|&(tag, _)| start(tag)));
        }
        let Some(receive) = receives.pop_front() else { unreachable!("some were started") };
        let (bytes, status) = receive.await?;
        assert_eq!((status.tag, status.bytes), (Tag(tag), length as u64), "{number}");
        assert!(bytes[..length] == pattern(number, length), "message {number}");
        assert!(bytes[length..].iter().all(|byte| *byte == 0), "behind message {number}");
    }
    Ok(())
}

/// Few different envelopes, so that many messages in a row have theirs in common.
fn programs() -> impl Strategy<Value = Program> {
    let lengths = prop::sample::select(vec![0, 1, 7, 8, 9, 13, 14, 20, 21, 40, 41]);
    let row = (0u32..2, lengths, 1usize..50);
    let rows = prop::collection::vec(row, 1..12);
    let limits = prop::sample::select(vec![256, 4096, 1 << 20]);
    (rows, 1usize..70, 1usize..70, any::<bool>(), any::<bool>(), limits).prop_map(
        |(rows, sent_at_once, received_at_once, wildcards, receives_first, unexpected_limit)| {
            let messages = rows
                .into_iter()
                .flat_map(|(tag, length, count)| std::iter::repeat_n((tag, length), count))
                .collect();
            Program {
                messages,
                sent_at_once,
                received_at_once,
                wildcards,
                receives_first,
                unexpected_limit,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn short_messages_arrive_whole_and_in_order(program in programs()) {
        for workers in [1, 2] {
            let program = program.clone();
            let mut config = config(2, workers);
            config.unexpected_limit = program.unexpected_limit;
            run_well(config, move |world| carry(world, program.clone()));
        }
    }
}
