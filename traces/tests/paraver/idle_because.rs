//! A worker without a task shows why, and the reason changes while it waits.

use talpf_traces::{Event, IdleCause, SyncArrivals, SyncMode, ValueKind, WaitNs};

use crate::support::{Trace, info, recorded, slice};

const SUPPLY: i64 = IdleCause::Supply.number();
const COMMUNICATION: i64 = IdleCause::Communication.number();
const THROTTLE: i64 = IdleCause::Throttle.number();
const AT_OTHERS: i64 = IdleCause::NotForThisWorker.number();
const END: i64 = IdleCause::End.number();

fn idle(began_ns: u64, ready: u32) -> Event {
    Event::Idle { began_ns, ready }
}

fn value(kind: ValueKind, value: i64) -> Event {
    Event::Value { rank: 0, kind, value }
}

fn sync_end(rank: u32, posted_ns: u64, end_ns: u64) -> Event {
    let [posted, arrived] = [WaitNs::between(posted_ns, end_ns); 2];
    Event::SyncEnd { rank, lane: 0, round: 0, posted, arrived }
}

/// Returns times and values of an event type of a thread, as `1:1` for rank and worker from 1, of a trace that
/// passes the linter.
fn values(events: &[(u32, u64, Event)], thread: &str, kind: &str) -> Vec<(u64, i64)> {
    let trace = Trace::of(&recorded(events), &info(2, 2, 200));
    trace.assert_clean();
    let mut found = Vec::new();
    for line in trace.records("2:") {
        let fields: Vec<&str> = line.split(':').collect();
        if fields[3..5].join(":") == thread {
            let pairs = fields[6..].chunks(2).filter(|pair| pair[0] == kind);
            found.extend(pairs.map(|pair| (fields[5].parse().unwrap(), pair[1].parse().unwrap())));
        }
    }
    found
}

fn causes(events: &[(u32, u64, Event)]) -> Vec<(u64, i64)> {
    values(events, "1:1", "95000022")
}

#[test]
fn a_rank_that_has_posted_all_of_a_round_waits_for_communication() {
    let mode = SyncMode { arrivals: SyncArrivals::Cached, barrier: false, ack: false };
    let begin = Event::SyncBegin { rank: 0, lane: 0, round: 0, mode, expected: None };
    let events = [
        (0, 5, begin),
        (0, 20, slice(0, 1, 10)),
        (0, 90, sync_end(0, 30, 90)),
        (0, 100, idle(20, 0)),
        (0, 110, slice(0, 2, 100)),
    ];
    // Until all was posted at 30, the round waits for the rank's own tasks.
    let expected = [(20, SUPPLY), (30, COMMUNICATION), (90, SUPPLY), (100, 0)];
    assert_eq!(causes(&events), expected);
}

#[test]
fn receives_and_requests_are_awaited_until_they_are_complete() {
    let (peer, tag, arrived) = (1, 7, WaitNs::default());
    let received = Event::ReceiveTagged { rank: 0, peer, message: 0, tag, arrived };
    let events = [
        (0, 10, slice(0, 1, 5)),
        (0, 20, value(ValueKind::ReceivePosted, 8)),
        (0, 30, received),
        (0, 40, value(ValueKind::OutstandingRequests, 2)),
        (0, 50, value(ValueKind::OutstandingRequests, 1)),
        (0, 60, value(ValueKind::OutstandingRequests, 0)),
        (0, 70, idle(10, 0)),
        (0, 80, slice(0, 2, 70)),
    ];
    let changes = [(20, COMMUNICATION), (30, SUPPLY), (40, COMMUNICATION), (60, SUPPLY), (70, 0)];
    assert_eq!(causes(&events), [&[(10, SUPPLY)], &changes[..]].concat());
}

#[test]
fn another_rank_that_waits_is_no_reason() {
    let events = [
        (0, 20, slice(0, 1, 10)),
        (1, 25, slice(1, 2, 10)),
        (1, 90, sync_end(1, 30, 90)),
        (0, 100, idle(20, 0)),
        (0, 110, slice(0, 3, 100)),
    ];
    assert_eq!(causes(&events), [(20, SUPPLY), (100, 0)]);
}

#[test]
fn throttle_ready_tasks_at_others_and_the_end_differ() {
    let events = [
        (0, 10, slice(0, 1, 5)),
        (0, 15, Event::throttle(0, true)),
        (0, 25, Event::throttle(0, false)),
        (0, 30, idle(10, 0)),
        (0, 40, slice(0, 2, 30)),
        (0, 50, idle(40, 3)),
        (0, 60, slice(0, 3, 50)),
        (1, 80, slice(0, 4, 50)),
        (0, 100, idle(60, 0)),
    ];
    let expected = [
        (10, SUPPLY),
        (15, THROTTLE),
        (25, SUPPLY),
        (30, 0),
        (40, AT_OTHERS),
        (50, 0),
        (60, SUPPLY),
        (80, END),
        (100, 0),
    ];
    assert_eq!(causes(&events), expected);
}

#[test]
fn a_task_on_a_slow_core_explains_one_worker() {
    let events = [
        (0, 10, slice(0, 1, 5)),
        (1, 10, slice(0, 2, 5)),
        (0, 15, value(ValueKind::SlowCores, 2)),
        (0, 25, value(ValueKind::SlowCores, 1)),
        (0, 35, value(ValueKind::SlowCores, 0)),
        (0, 50, idle(10, 0)),
        (1, 50, idle(10, 0)),
        (0, 60, slice(0, 3, 50)),
    ];
    let slow = IdleCause::SlowCore.number();
    let first = [(10, SUPPLY), (15, slow), (35, SUPPLY), (50, 0)];
    assert_eq!(causes(&events), first);
    let second = [(10, SUPPLY), (15, slow), (25, SUPPLY), (50, 0)];
    assert_eq!(values(&events, "1:2", "95000022"), second);
}

#[test]
fn levels_of_tasks_fall_to_none_where_a_worker_leaves_and_where_a_rank_ends() {
    let ready = |rank, value| Event::Value { rank, kind: ValueKind::TasksReady, value };
    let events = [
        (0, 20, slice(0, 1, 10)),
        (0, 20, ready(0, 4)),
        (0, 20, value(ValueKind::TasksNotDone, 9)),
        (0, 40, slice(1, 2, 30)),
        (0, 40, ready(1, 3)),
        (0, 60, slice(0, 3, 50)),
        (0, 60, ready(0, 0)),
        (0, 80, idle(60, 0)),
    ];
    assert_eq!(values(&events, "1:1", "95000023"), [(20, 4), (30, 0)]);
    assert_eq!(values(&events, "2:1", "95000023"), [(40, 3), (50, 0)]);
    assert_eq!(values(&events, "1:1", "95000024"), [(20, 9), (60, 0)]);
}
