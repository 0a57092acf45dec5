//! Each thread has exactly one state at any time, and shows its worker while
//! that worker belongs to its rank.

use crate::support::{Trace, begin, end, info, outside, recorded};
use talpf_traces::{Event, State};

#[test]
fn worker_belongs_to_the_rank_that_ran_last() {
    let trace = Trace::of(
        &recorded(&[
            (0, 2, outside(State::Scheduling)),
            (0, 10, begin(1, 1)),
            (0, 20, end(1, 1)),
            (0, 30, begin(0, 2)),
            (0, 40, end(0, 2)),
            (0, 50, outside(State::Blocked)),
        ]),
        &info(2, 1, 60),
    );
    trace.assert_clean();
    assert_eq!(
        trace.records("1:1:1:1:"),
        ["1:1:1:1:1:0:30:0", "1:1:1:1:1:30:40:1", "1:1:1:1:1:40:50:7", "1:1:1:1:1:50:60:9",],
    );
    // Before its first slice the worker belongs to the rank of that slice.
    assert_eq!(
        trace.records("1:1:1:2:"),
        [
            "1:1:1:2:1:0:2:0",
            "1:1:1:2:1:2:10:7",
            "1:1:1:2:1:10:20:1",
            "1:1:1:2:1:20:30:7",
            "1:1:1:2:1:30:60:0",
        ],
    );
}

#[test]
fn states_without_length_leave_no_line() {
    let trace = Trace::of(
        &recorded(&[
            (0, 0, outside(State::Scheduling)),
            (0, 5, outside(State::Polling)),
            (0, 5, outside(State::Blocked)),
            (0, 5, outside(State::Scheduling)),
            (0, 9, outside(State::Scheduling)),
            (0, 20, outside(State::Polling)),
        ]),
        &info(1, 1, 20),
    );
    trace.assert_clean();
    assert_eq!(trace.records("1:"), ["1:1:1:1:1:0:5:7", "1:1:1:1:1:5:20:7"]);
}

#[test]
fn state_recorded_inside_a_body_shows_after_it() {
    let trace = Trace::of(
        &recorded(&[(0, 1, begin(0, 1)), (0, 2, outside(State::Polling)), (0, 3, end(0, 1))]),
        &info(1, 1, 4),
    );
    trace.assert_clean();
    assert_eq!(trace.records("1:"), ["1:1:1:1:1:0:1:0", "1:1:1:1:1:1:3:1", "1:1:1:1:1:3:4:6"],);
}

#[test]
fn record_after_the_given_end_makes_the_trace_longer() {
    let trace =
        Trace::of(&recorded(&[(0, 50, Event::TaskEnd { rank: 0, task: 1 })]), &info(1, 1, 9));
    trace.assert_clean();
    assert_eq!(trace.records("1:"), ["1:1:1:1:1:0:50:0"]);
}
