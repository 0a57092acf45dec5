//! Each operation has its effect and completes with its opcode.

use std::sync::atomic::Ordering;

use crate::common::*;
use crate::connected_pair::ConnectedPair;
use ibverbs_sim::*;

#[test]
fn nothing_happens_before_packets_move() {
    let pair = ConnectedPair::new();
    let target = pair.b.buffer(8);
    let remote = target.region.at(0);
    pair.a.post(&[request(1, Operation::Write { remote }, Payload::Inline(b"x"))]);
    assert!(!pair.a.queue_pair.is_drained());
    assert!(pair.a.sent().is_empty());
    assert_eq!(target.bytes(), [0; 8]);
    pair.settle();
    assert!(pair.a.queue_pair.is_drained());
    assert_eq!(statuses(&pair.a.sent()), [(1, CompletionStatus::Success)]);
    assert_eq!(target.bytes()[0], b'x');
}

#[test]
fn send_fills_the_next_receive_piece_by_piece() {
    let pair = ConnectedPair::new();
    let (source, target) = (pair.a.buffer(16), pair.b.buffer(16));
    source.fill(b"0123456789abcdef");
    pair.b.receive(5, &[target.region.slice(8, 3), target.region.slice(0, 8)]);
    let pieces = [source.region.slice(2, 4), source.region.slice(10, 2)];
    let send = Operation::SendWithImmediate { immediate: u32::MAX };
    pair.a.post(&[request(1, send, Payload::Gather(&pieces))]);
    pair.settle();
    assert_eq!(&target.bytes()[..12], b"5ab\0\0\0\0\x00234\0");
    let expected = WorkCompletion {
        wr_id: 5,
        opcode: CompletionOpcode::Receive,
        byte_len: 6,
        immediate: Some(u32::MAX),
        queue_pair: pair.b.queue_pair.number(),
        source: pair.a.queue_pair.number(),
        ..WorkCompletion::default()
    };
    assert_eq!(pair.b.received(), [expected]);
    assert_eq!(pair.a.sent()[0].opcode, CompletionOpcode::Send);
}

#[test]
fn a_write_with_immediate_lands_before_its_number_is_seen() {
    let pair = ConnectedPair::new();
    let target = pair.b.buffer(24);
    pair.b.receives(0..1);
    let remote = target.region.at(9);
    let write = Operation::WriteWithImmediate { remote, immediate: 7 };
    pair.a.post(&[request(1, write, Payload::Inline(b"hello"))]);
    pair.settle();
    let received = pair.b.received()[0];
    assert_eq!((received.immediate, received.byte_len), (Some(7), 5));
    assert_eq!(received.opcode, CompletionOpcode::ReceiveWriteWithImmediate);
    assert_eq!(&target.bytes()[8..15], b"\0hello\0");
}

#[test]
fn read_brings_back_remote_bytes() {
    let pair = ConnectedPair::new();
    let (target, source) = (pair.a.buffer(16), pair.b.buffer(8));
    source.fill(b"abcdefgh");
    let read = Operation::Read { remote: source.region.at(3) };
    let pieces = [target.region.slice(1, 2), target.region.slice(8, 2)];
    pair.a.post(&[request(1, read, Payload::Gather(&pieces))]);
    pair.settle();
    assert_eq!(target.bytes(), b"\0de\0\0\0\0\0fg\0\0\0\0\0\0");
    let sent = pair.a.sent()[0];
    assert_eq!((sent.opcode, sent.byte_len), (CompletionOpcode::Read, 4));
}

#[test]
fn atomics_bring_back_what_was_there() {
    let pair = ConnectedPair::new();
    let (result, word) = (pair.a.buffer(8), pair.b.buffer(16));
    word.word(1).store(u64::MAX, Ordering::SeqCst);
    let remote = word.region.at(8);
    let run = |operation| {
        pair.a.post(&[request(1, operation, Payload::Gather(&[result.all()]))]);
        pair.settle();
        assert_eq!(pair.a.sent()[0].byte_len, 8);
        let value = |buffer: &Buffer, at| buffer.word(at).load(Ordering::SeqCst);
        (value(&result, 0), value(&word, 1))
    };
    assert_eq!(run(Operation::FetchAdd { remote, add: 3 }), (u64::MAX, 2));
    assert_eq!(run(Operation::CompareSwap { remote, compare: 9, swap: 1 }), (2, 2));
    assert_eq!(run(Operation::CompareSwap { remote, compare: 2, swap: 1 }), (2, 1));
}

#[test]
fn requests_take_effect_and_complete_in_order() {
    let pair = ConnectedPair::new();
    let (target, result) = (pair.b.buffer(8), pair.a.buffer(8 * 50));
    let remote = target.region.at(0);
    for value in 0..50u64 {
        let bytes = value.to_ne_bytes();
        let place = [result.region.slice(8 * value as usize, 8)];
        pair.a.post(&[
            request(2 * value, Operation::Write { remote }, Payload::Inline(&bytes)),
            request(2 * value + 1, Operation::Read { remote }, Payload::Gather(&place)),
        ]);
    }
    pair.settle();
    let sent: Vec<u64> = pair.a.sent().iter().map(|sent| sent.wr_id).collect();
    assert!(sent.into_iter().eq(0..100));
    assert!((0..50).all(|at| result.word(at).load(Ordering::SeqCst) == at as u64));
}

#[test]
fn the_longest_message_passes_and_a_longer_one_does_not() {
    let longest = 4 << 20;
    let pair = ConnectedPair::new();
    assert_eq!(pair.a.context.query_device().max_message_size, longest);
    let (source, target) =
        (pair.a.buffer(longest as usize + 8), pair.b.buffer(longest as usize + 8));
    source.word(longest as usize / 8 - 1).store(9, Ordering::SeqCst);
    let write = Operation::Write { remote: target.region.at(0) };
    pair.a.post(&[request(1, write, Payload::Gather(&[source.region.slice(0, longest)]))]);
    pair.settle();
    assert_eq!(statuses(&pair.a.sent()), [(1, CompletionStatus::Success)]);
    assert_eq!(target.word(longest as usize / 8 - 1).load(Ordering::SeqCst), 9);
    pair.a.post(&[request(2, write, Payload::Gather(&[source.region.slice(0, longest + 1)]))]);
    pair.settle();
    assert_eq!(statuses(&pair.a.sent()), [(2, CompletionStatus::LocalLength)]);
}
