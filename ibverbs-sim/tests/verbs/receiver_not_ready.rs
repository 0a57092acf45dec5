//! A sender that finds no receive waits: for the receive, or until its retries are used up.

use crate::common::*;
use ibverbs_sim::*;

#[test]
fn posting_a_receive_resumes_the_sender_where_it_stalled() {
    let (a, b) = pair();
    let target = b.buffer(8);
    let remote = target.region.at(0);
    a.post(&[
        send(1),
        request(2, Operation::Write { remote }, Payload::Inline(b"later")),
        request(3, Operation::WriteWithImmediate { remote, immediate: 3 }, Payload::Inline(b"x")),
    ]);
    // Requests behind a stalled one keep their order.
    a.post(&[send(4)]);
    assert!(a.sent().is_empty());
    assert_eq!(target.bytes(), [0; 8]);
    b.receives(0..1);
    assert_eq!(a.sent().len(), 2);
    assert_eq!(&target.bytes()[..5], b"later");
    b.receives(1..2);
    assert_eq!(&target.bytes()[..5], b"xater");
    assert_eq!(statuses(&a.sent()), [(3, CompletionStatus::Success)]);
    b.receives(2..4);
    assert_eq!(statuses(&a.sent()), [(4, CompletionStatus::Success)]);
    a.post(&[send(5)]);
    assert!(b.received().iter().map(|got| got.wr_id).eq(0..4));
}

#[test]
fn seven_retries_wait_for_ever() {
    let (a, b) = pair();
    a.post(&[send(1)]);
    a.advance(u64::MAX);
    assert_eq!(a.context.next_deadline_ns(), None);
    assert!(a.sent().is_empty());
    b.receives(0..1);
    assert_eq!(a.sent().len(), 1);
}

#[test]
fn fewer_retries_end_after_as_many_waits() {
    let connection = Connection { rnr_retry: 2, min_rnr_timer_ns: 10, ..Connection::default() };
    let (a, b) = pair_on(&device(), &connection);
    a.advance(100);
    a.post(&[send(1), send(2)]);
    assert_eq!(a.context.next_deadline_ns(), Some(110));
    a.advance(110);
    a.advance(119);
    assert!(a.sent().is_empty());
    a.advance(120);
    assert_eq!(
        statuses(&a.sent()),
        [
            (1, CompletionStatus::ReceiverNotReadyRetryExceeded),
            (2, CompletionStatus::WorkRequestFlushed)
        ]
    );
    assert_eq!(a.queue_pair.state(), QueuePairState::Error);
    // The peer is not in error.
    assert_eq!(b.queue_pair.state(), QueuePairState::ReadyToSend);
}

#[test]
fn a_jump_over_several_waits_uses_them_all() {
    let connection = Connection { rnr_retry: 6, min_rnr_timer_ns: 10, ..Connection::default() };
    let (a, _b) = pair_on(&device(), &connection);
    a.post(&[send(1)]);
    a.advance(59);
    assert!(a.sent().is_empty());
    a.advance(1_000);
    assert_eq!(a.sent()[0].status, CompletionStatus::ReceiverNotReadyRetryExceeded);
}

#[test]
fn no_retry_fails_at_once_and_a_receive_renews_the_retries() {
    let connection = Connection { rnr_retry: 0, ..Connection::default() };
    let (a, _b) = pair_on(&device(), &connection);
    a.post(&[send(1)]);
    assert_eq!(a.sent()[0].status, CompletionStatus::ReceiverNotReadyRetryExceeded);

    let connection = Connection { rnr_retry: 1, min_rnr_timer_ns: 10, ..Connection::default() };
    let (a, b) = pair_on(&device(), &connection);
    for round in 1..4 {
        a.post(&[send(round)]);
        a.advance(round * 5);
        assert!(a.sent().is_empty());
        b.receives(0..1);
        assert_eq!(a.sent()[0].status, CompletionStatus::Success);
    }
}
