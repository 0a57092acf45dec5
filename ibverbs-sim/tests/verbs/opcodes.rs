//! Each operation has its effect and completes with its opcode.

use crate::common::*;
use ibverbs_sim::*;

#[test]
fn send_fills_the_next_receive() {
    let (a, b) = pair();
    let (source, target) = (a.buffer(16), b.buffer(16));
    source.fill(b"0123456789abcdef");
    b.receive(5, &[target.all()]);
    a.post(&[request(1, Operation::Send, Payload::Gather(&[source.region.slice(2, 4)]))]);
    assert_eq!(&target.bytes()[..5], b"2345\0");
    let expected = WorkCompletion {
        wr_id: 5,
        opcode: CompletionOpcode::Receive,
        byte_len: 4,
        queue_pair: b.queue_pair.number(),
        source: a.queue_pair.number(),
        ..WorkCompletion::default()
    };
    assert_eq!(b.received(), [expected]);
    let sent = a.sent()[0];
    assert_eq!((sent.wr_id, sent.opcode, sent.immediate), (1, CompletionOpcode::Send, None));
}

#[test]
fn immediates_arrive_with_send_and_write() {
    let (a, b) = pair();
    let target = b.buffer(8);
    b.receives(0..2);
    let remote = target.region.at(0);
    a.post(&[
        request(1, Operation::SendWithImmediate { immediate: u32::MAX }, Payload::Inline(b"")),
        request(2, Operation::WriteWithImmediate { remote, immediate: 0 }, Payload::Inline(b"x")),
    ]);
    let received = b.received();
    assert_eq!(received[0].immediate, Some(u32::MAX));
    assert_eq!(received[0].opcode, CompletionOpcode::Receive);
    assert_eq!(received[1].immediate, Some(0));
    assert_eq!(received[1].opcode, CompletionOpcode::ReceiveWriteWithImmediate);
    assert_eq!(received[1].byte_len, 1);
}

#[test]
fn write_leaves_no_completion_at_the_peer() {
    let (a, b) = pair();
    let target = b.buffer(24);
    b.receives(0..1);
    let remote = target.region.at(9);
    a.post(&[request(1, Operation::Write { remote }, Payload::Inline(b"hello"))]);
    assert_eq!(&target.bytes()[8..15], b"\0hello\0");
    assert!(b.received().is_empty());
    assert_eq!(a.sent()[0].opcode, CompletionOpcode::Write);
}

#[test]
fn read_brings_back_remote_bytes() {
    let (a, b) = pair();
    let (target, source) = (a.buffer(8), b.buffer(8));
    source.fill(b"abcdefgh");
    let operation = Operation::Read { remote: source.region.at(3) };
    a.post(&[request(1, operation, Payload::Gather(&[target.region.slice(1, 4)]))]);
    assert_eq!(target.bytes(), b"\0defg\0\0\0");
    let sent = a.sent()[0];
    assert_eq!((sent.opcode, sent.byte_len), (CompletionOpcode::Read, 4));
}

#[test]
fn atomics_bring_back_what_was_there() {
    let (a, b) = pair();
    let (result, word) = (a.buffer(8), b.buffer(16));
    word.word(1).store(u64::MAX, std::sync::atomic::Ordering::SeqCst);
    let remote = word.region.at(8);
    let run = |operation| {
        a.post(&[request(1, operation, Payload::Gather(&[result.all()]))]);
        assert_eq!(a.sent()[0].byte_len, 8);
        let value = |buffer: &Buffer, at| buffer.word(at).load(std::sync::atomic::Ordering::SeqCst);
        (value(&result, 0), value(&word, 1))
    };
    assert_eq!(run(Operation::FetchAdd { remote, add: 3 }), (u64::MAX, 2));
    assert_eq!(run(Operation::CompareSwap { remote, compare: 9, swap: 1 }), (2, 2));
    assert_eq!(run(Operation::CompareSwap { remote, compare: 2, swap: 1 }), (2, 1));
}

#[test]
fn empty_messages_need_no_key() {
    let (a, b) = pair();
    let remote = RemoteAddress { address: 1, key: RemoteKey::from_u32(99) };
    let nothing = ScatterGather { address: 7, length: 0, key: LocalKey::default() };
    b.receives(0..1);
    a.post(&[
        request(1, Operation::Write { remote }, Payload::Gather(&[])),
        request(2, Operation::Read { remote }, Payload::Gather(&[nothing])),
        request(3, Operation::WriteWithImmediate { remote, immediate: 1 }, Payload::Inline(b"")),
    ]);
    assert!(a.sent().iter().all(|sent| sent.status == CompletionStatus::Success));
    assert_eq!(b.received()[0].byte_len, 0);
}

#[test]
fn a_queue_pair_can_be_its_own_peer() {
    let end = End::new(&device(), |_| {});
    end.connect(&end, &Connection::default());
    let buffer = end.buffer(16);
    buffer.fill(b"abcdefgh--------");
    // Source and target overlap.
    let operation = Operation::Write { remote: buffer.region.at(3) };
    end.post(&[request(1, operation, Payload::Gather(&[buffer.region.slice(0, 8)]))]);
    assert_eq!(buffer.bytes(), b"abcabcdefgh-----");
}
