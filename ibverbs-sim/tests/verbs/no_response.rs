//! A peer that does not respond is noticed once the time of all retries has passed.

use crate::common::*;
use ibverbs_sim::*;

fn short_timeout() -> Connection {
    Connection { timeout_ns: 100, retry_count: 2, ..Connection::default() }
}

fn assert_gives_up(a: &End) {
    a.post(&[send(1), send(2)]);
    a.advance(299);
    assert!(a.sent().is_empty());
    a.advance(300);
    assert_eq!(
        statuses(&a.sent()),
        [(1, CompletionStatus::RetryExceeded), (2, CompletionStatus::WorkRequestFlushed)]
    );
}

#[test]
fn a_killed_peer_does_not_answer() {
    let (a, b) = pair_on(&device(), &short_timeout());
    b.receives(0..2);
    b.context.kill();
    assert_eq!(b.context.query_port(1).unwrap().state, PortState::Down);
    assert_gives_up(&a);
    assert!(b.received().is_empty());
}

#[test]
fn a_killed_context_reaches_nobody() {
    let (a, b) = pair_on(&device(), &short_timeout());
    b.receives(0..2);
    a.context.kill();
    assert_gives_up(&a);
    assert!(b.received().is_empty());
}

#[test]
fn a_destroyed_failed_or_unconnected_peer_does_not_answer() {
    let (a, End { queue_pair, .. }) = pair_on(&device(), &short_timeout());
    drop(queue_pair);
    assert_gives_up(&a);

    let (a, b) = pair_on(&device(), &short_timeout());
    b.go_to(QueuePairState::Error);
    assert_gives_up(&a);

    let device = device();
    let (a, b) = (End::new(&device, |_| {}), End::new(&device, |_| {}));
    a.connect(&b, &short_timeout());
    assert_gives_up(&a);

    // Connected to another queue pair.
    let (b, c) = pair_on(&device, &short_timeout());
    let a = End::new(&device, |_| {});
    a.connect(&b, &short_timeout());
    b.receives(0..1);
    assert_gives_up(&a);
    c.post(&[send(1)]);
    assert_eq!(c.sent().len(), 1);
}

#[test]
fn a_peer_that_comes_late_is_found_by_a_retry() {
    let device = device();
    let (a, b) = (End::new(&device, |_| {}), End::new(&device, |_| {}));
    a.connect(&b, &short_timeout());
    a.post(&[send(1)]);
    b.connect(&a, &short_timeout());
    b.receives(0..1);
    assert!(a.sent().is_empty());
    a.advance(100);
    assert_eq!(statuses(&a.sent()), [(1, CompletionStatus::Success)]);
}

#[test]
fn ends_that_disagree_about_the_first_sequence_number_get_nowhere() {
    let device = device();
    let (a, b) = (End::new(&device, |_| {}), End::new(&device, |_| {}));
    a.connect(&b, &Connection { psn: 5, ..short_timeout() });
    b.connect(&a, &Connection { psn: 4, ..short_timeout() });
    b.receives(0..2);
    assert_gives_up(&a);
}

#[test]
fn sequence_numbers_wrap() {
    let start = Connection { psn: 0xff_fffe, ..Connection::default() };
    let (a, b) = pair_on(&device(), &start);
    b.receives(0..5);
    for wr_id in 0..5 {
        a.post(&[send(wr_id)]);
    }
    assert_eq!((a.sent().len(), b.received().len()), (5, 5));
}

#[test]
fn no_timeout_waits_for_ever() {
    let (a, b) = pair_on(&device(), &Connection { timeout_ns: 0, ..short_timeout() });
    b.context.kill();
    a.post(&[send(1)]);
    assert_eq!(a.context.next_deadline_ns(), None);
    a.advance(u64::MAX);
    assert!(a.sent().is_empty());
}
