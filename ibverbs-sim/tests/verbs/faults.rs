//! Every message takes effect once and in order on a link that loses, repeats and delays messages.

use std::sync::atomic::Ordering;

use crate::common::*;
use ibverbs_sim::*;

const ALWAYS: u32 = 1_000_000;

fn short_timeout() -> Connection {
    Connection { timeout_ns: 100, retry_count: 7, ..Connection::default() }
}

/// Advances the time until no request waits for it.
fn settle(end: &End) {
    while let Some(deadline) = end.context.next_deadline_ns() {
        end.advance(deadline);
    }
}

#[test]
fn a_link_that_loses_everything_ends_in_retry_exceeded() {
    let (a, b) = pair_on(
        &faulty(FaultPlan { seed: 1, drop_request_ppm: ALWAYS, ..FaultPlan::default() }),
        &short_timeout(),
    );
    b.receives(0..1);
    a.post(&[send(1)]);
    a.advance(799);
    assert!(a.sent().is_empty());
    a.advance(800);
    assert_eq!(a.sent()[0].status, CompletionStatus::RetryExceeded);
    assert!(b.received().is_empty());
}

/// A delay is no wait for a response, and does not renew the retries.
#[test]
fn a_link_that_also_delays_everything_ends_in_retry_exceeded() {
    let plan = FaultPlan {
        seed: 1,
        drop_request_ppm: ALWAYS,
        delay_ppm: ALWAYS,
        max_delay_ns: 50,
        ..FaultPlan::default()
    };
    let (a, _b) = pair_on(&faulty(plan), &short_timeout());
    a.post(&[send(1)]);
    for time in (0..).take_while(|time| *time <= 9 * 150) {
        assert!(a.context.next_deadline_ns().is_some());
        a.advance(time);
        if let [sent] = a.sent()[..] {
            assert_eq!(sent.status, CompletionStatus::RetryExceeded);
            assert!(time > 800);
            return;
        }
    }
    panic!("it never ends");
}

#[test]
fn a_lost_answer_does_not_repeat_the_effect() {
    let plan = FaultPlan { seed: 2, drop_response_ppm: ALWAYS, ..FaultPlan::default() };
    let (a, b) = pair_on(&faulty(plan), &short_timeout());
    let (local, word) = (a.buffer(8), b.buffer(8));
    let operation = Operation::FetchAdd { remote: word.region.at(0), add: 1 };
    a.post(&[request(1, operation, Payload::Gather(&[local.all()]))]);
    settle(&a);
    assert_eq!(a.sent()[0].status, CompletionStatus::RetryExceeded);
    assert_eq!(word.word(0).load(Ordering::SeqCst), 1);
}

#[test]
fn duplicates_are_invisible() {
    let plan = FaultPlan { seed: 3, duplicate_ppm: ALWAYS, ..FaultPlan::default() };
    let (a, b) = pair_on(&faulty(plan), &short_timeout());
    let (local, word) = (a.buffer(16), b.buffer(8));
    word.word(0).store(40, Ordering::SeqCst);
    let (first, second) = ([local.region.slice(0, 8)], [local.region.slice(8, 8)]);
    let remote = word.region.at(0);
    b.receives(0..2);
    a.post(&[
        request(1, Operation::FetchAdd { remote, add: 2 }, Payload::Gather(&first)),
        request(2, Operation::Read { remote }, Payload::Gather(&second)),
        request(
            3,
            Operation::CompareSwap { remote, compare: 42, swap: 7 },
            Payload::Gather(&first),
        ),
        send(4),
    ]);
    assert_eq!(a.sent().len(), 4);
    assert_eq!(b.received().len(), 1);
    assert_eq!(local.word(0).load(Ordering::SeqCst), 42);
    assert_eq!(local.word(1).load(Ordering::SeqCst), 42);
    assert_eq!(word.word(0).load(Ordering::SeqCst), 7);
}

#[test]
fn a_delayed_message_arrives_when_its_time_has_come() {
    let plan = FaultPlan { seed: 4, delay_ppm: ALWAYS, max_delay_ns: 1000, ..FaultPlan::default() };
    let (a, b) = pair_on(&faulty(plan), &short_timeout());
    b.receives(0..1);
    a.advance(50);
    a.post(&[send(1)]);
    let arrival = a.context.next_deadline_ns().unwrap();
    assert!((51..=1050).contains(&arrival));
    a.advance(arrival - 1);
    assert!(b.received().is_empty());
    a.advance(arrival);
    assert_eq!(b.received().len(), 1);
}

#[test]
fn another_queue_pair_overtakes_and_none_overtakes_itself() {
    let plan = FaultPlan { seed: 5, reorder_ppm: 300_000, ..FaultPlan::default() };
    let device = faulty(plan);
    let (a, b) = pair_on(&device, &short_timeout());
    let (c, d) = pair_on(&device, &short_timeout());
    let mut overtaken = 0;
    for wr_id in 0..50 {
        b.receives(wr_id..wr_id + 1);
        d.receives(wr_id..wr_id + 1);
        a.post(&[send(wr_id)]);
        c.post(&[send(wr_id)]);
        let (first, second) = (b.received(), d.received());
        overtaken += usize::from(first.is_empty() && !second.is_empty());
        settle(&a);
        settle(&c);
        let all = [first, second, b.received(), d.received()].concat();
        assert!(all.iter().all(|got| got.wr_id == wr_id));
        assert_eq!(all.len(), 2);
    }
    assert!(overtaken > 0);
}

#[test]
fn one_seed_gives_one_course_of_events() {
    let run = |seed| {
        let plan = FaultPlan {
            seed,
            drop_request_ppm: 100_000,
            drop_response_ppm: 100_000,
            duplicate_ppm: 100_000,
            delay_ppm: 100_000,
            max_delay_ns: 500,
            reorder_ppm: 100_000,
        };
        let (a, b) = pair_on(&faulty(plan), &short_timeout());
        let mut deadlines = Vec::new();
        for wr_id in 0..200 {
            b.receives(wr_id..wr_id + 1);
            a.post(&[send(wr_id)]);
            while let Some(deadline) = a.context.next_deadline_ns() {
                deadlines.push(deadline);
                a.advance(deadline);
            }
            assert_eq!(statuses(&a.sent()), [(wr_id, CompletionStatus::Success)]);
            assert_eq!(statuses(&b.received()), [(wr_id, CompletionStatus::Success)]);
        }
        deadlines
    };
    assert_eq!(run(6), run(6));
    assert_ne!(run(6), run(7));
}
