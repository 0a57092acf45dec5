//! Each thread has exactly one state at any time, and shows its worker while
//! that worker belongs to its rank.

use crate::support::{Trace, further, info, recorded, slice, state};
use talpf_traces::{Event, State, ValueKind};

#[test]
fn worker_belongs_to_the_rank_that_ran_last() {
    let trace = Trace::of(
        &recorded(&[
            (0, 10, state(State::Idle, 2)),
            (0, 20, slice(1, 1, 10)),
            (0, 40, slice(0, 2, 30)),
            (0, 55, state(State::Blocked, 50)),
        ]),
        &info(2, 1, 60),
    );
    trace.assert_clean();
    assert_eq!(
        trace.records("1:1:1:1:"),
        [
            "1:1:1:1:1:0:30:2",
            "1:1:1:1:1:30:40:1",
            "1:1:1:1:1:40:50:7",
            "1:1:1:1:1:50:55:9",
            "1:1:1:1:1:55:60:2",
        ],
    );
    // Before its first slice the worker belongs to the rank of that slice.
    assert_eq!(
        trace.records("1:1:1:2:"),
        [
            "1:1:1:2:1:0:2:2",
            "1:1:1:2:1:2:10:0",
            "1:1:1:2:1:10:20:1",
            "1:1:1:2:1:20:30:7",
            "1:1:1:2:1:30:60:2",
        ],
    );
}

#[test]
fn states_without_length_leave_no_line() {
    let trace = Trace::of(
        &recorded(&[
            (0, 5, state(State::Idle, 0)),
            (0, 5, state(State::Polling, 5)),
            (0, 5, slice(0, 1, 5)),
            (0, 20, state(State::Idle, 5)),
        ]),
        &info(1, 1, 20),
    );
    trace.assert_clean();
    assert_eq!(trace.records("1:"), ["1:1:1:1:1:0:20:0"]);
}

#[test]
fn innermost_state_shows_and_gives_way() {
    let trace = Trace::of(
        &recorded(&[
            (0, 4, state(State::Polling, 3)),
            (0, 6, state(State::Blocked, 5)),
            (0, 8, state(State::Idle, 2)),
            (0, 9, Event::Value { rank: 0, kind: ValueKind::PollCompletions, value: 1 }),
        ]),
        &info(1, 1, 9),
    );
    trace.assert_clean();
    assert_eq!(
        trace.records("1:"),
        [
            "1:1:1:1:1:0:2:2",
            "1:1:1:1:1:2:3:0",
            "1:1:1:1:1:3:4:6",
            "1:1:1:1:1:4:5:0",
            "1:1:1:1:1:5:6:9",
            "1:1:1:1:1:6:8:0",
            "1:1:1:1:1:8:9:7",
        ],
    );
}

#[test]
fn slice_inside_another_interrupts_it_and_gives_it_back() {
    let trace = Trace::of(
        &recorded(&[
            (0, 20, slice(1, 5, 12)),
            (0, 25, slice(0, 6, 20)),
            (0, 30, slice(0, 4, 10)),
            (0, 40, further(0, 4, 35)),
        ]),
        &info(2, 1, 40),
    );
    trace.assert_clean();
    assert_eq!(
        trace.records("2:"),
        [
            "2:1:1:1:1:10:10:4:11:1:95000021:1",
            "2:0:1:1:1:12:10:0:11:0",
            "2:1:1:2:1:12:10:5:11:1:95000021:1",
            "2:1:1:1:1:20:10:6:11:1:95000021:1",
            "2:0:1:2:1:20:10:0:11:0",
            "2:1:1:1:1:25:10:4:11:1",
            "2:1:1:1:1:30:10:0:11:0",
            "2:1:1:1:1:35:10:4:11:1",
            "2:1:1:1:1:40:10:0:11:0",
        ],
        "each task starts once"
    );
    let running: Vec<_> = trace.prv.lines().filter(|line| line.ends_with(":1")).collect();
    assert!(running.contains(&"1:1:1:2:1:12:20:1") && running.contains(&"1:1:1:1:1:20:30:1"));
}

#[test]
fn slices_that_overlap_each_end_for_themselves() {
    let trace = Trace::of(
        &recorded(&[(0, 30, slice(0, 4, 10)), (0, 40, slice(0, 5, 20))]),
        &info(1, 1, 40),
    );
    trace.assert_clean();
    assert_eq!(trace.records("1:"), ["1:1:1:1:1:0:10:2", "1:1:1:1:1:10:40:1"]);
    assert_eq!(trace.records("2:1:1:1:1:20:10:5").len(), 1);
    assert_eq!(trace.records("2:").len(), 3);
}

#[test]
fn record_after_the_given_end_makes_the_trace_longer() {
    let trace = Trace::of(&recorded(&[(0, 50, state(State::Idle, 0))]), &info(1, 1, 9));
    trace.assert_clean();
    assert_eq!(trace.records("1:"), ["1:1:1:1:1:0:50:0"]);
}
