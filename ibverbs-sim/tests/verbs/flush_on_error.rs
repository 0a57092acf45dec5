//! Requests that are outstanding when a queue pair goes into error complete as flushed.

use crate::common::*;
use ibverbs_sim::*;

const FLUSHED: CompletionStatus = CompletionStatus::WorkRequestFlushed;

#[test]
fn sends_and_receives_are_flushed_in_order() {
    let (a, _b) = pair();
    a.receives(10..13);
    let quiet = SendWorkRequest { flags: SendFlags::NONE, ..send(2) };
    a.post(&[send(1), quiet, send(3)]);
    a.go_to(QueuePairState::Error);
    assert_eq!(statuses(&a.sent()), [(1, FLUSHED), (2, FLUSHED), (3, FLUSHED)]);
    assert_eq!(statuses(&a.received()), [(10, FLUSHED), (11, FLUSHED), (12, FLUSHED)]);
}

#[test]
fn what_is_posted_in_error_is_flushed_at_once() {
    let (a, _b) = pair();
    a.go_to(QueuePairState::Error);
    a.post(&[send(1)]);
    a.receives(2..3);
    assert_eq!(statuses(&a.sent()), [(1, FLUSHED)]);
    assert_eq!(statuses(&a.received()), [(2, FLUSHED)]);
}

#[test]
fn a_failure_flushes_both_ends() {
    let (a, b) = pair();
    a.receives(10..11);
    b.receives(20..21);
    b.post(&[send(5), send(6)]);
    assert_eq!(b.sent().len(), 1);
    let remote = RemoteAddress::default();
    let bad = request(1, Operation::Write { remote }, Payload::Inline(b"x"));
    a.post(&[bad, send(2)]);
    let sent = statuses(&a.sent());
    assert_eq!(sent, [(1, CompletionStatus::RemoteAccess), (2, FLUSHED)]);
    assert_eq!(statuses(&b.received()), [(20, FLUSHED)]);
    assert_eq!(statuses(&b.sent()), [(6, FLUSHED)]);
}

#[test]
fn flushed_requests_free_their_slots() {
    let device = device();
    let a = End::new(&device, |init| init.max_send_wr = 2);
    let b = End::new(&device, |_| {});
    connect(&a, &b, &Connection::default());
    for _ in 0..3 {
        a.post(&[send(1), send(2)]);
        assert!(a.try_post(&[send(3)]).is_err());
        a.go_to(QueuePairState::Error);
        assert_eq!(a.sent().len(), 2);
        a.post(&[send(4), send(5)]);
        assert_eq!(a.sent().len(), 2);
        a.go_to(QueuePairState::Reset);
        b.go_to(QueuePairState::Reset);
        connect(&a, &b, &Connection::default());
    }
}
