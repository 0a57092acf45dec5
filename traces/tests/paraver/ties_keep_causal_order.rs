//! Records of one time: states before events before messages, those of a
//! thread in the order of recording and on one line.

use crate::support::{Trace, info, recorded, slice, state};
use talpf_traces::{Event, MessageKind, State, ValueKind, WaitNs};

fn value(rank: u32, value: i64) -> Event {
    Event::Value { rank, kind: ValueKind::PollCompletions, value }
}

#[test]
fn one_moment_of_everything() {
    let waited = WaitNs::default();
    let trace = Trace::of(
        &recorded(&[
            (1, 10, value(0, 4)),
            (1, 10, Event::Receive { rank: 0, peer: 0, message: 1, lane: 0, round: 0 }),
            (
                0,
                10,
                Event::Send {
                    kind: MessageKind::Put,
                    rank: 0,
                    peer: 0,
                    message: 1,
                    bytes: 8,
                    waited,
                },
            ),
            (0, 10, value(0, 2)),
            (0, 10, slice(0, 3, 10)),
            (0, 12, slice(0, 5, 10)),
        ]),
        &info(1, 2, 20),
    );
    trace.assert_clean();
    let expected = "\
1:1:1:1:1:0:10:2
1:2:1:1:2:0:20:2
1:1:1:1:1:10:12:1
2:1:1:1:1:10:10:5:11:1:95000021:1:10:3:11:1:95000021:1:95000012:2:10:5:11:1
2:2:1:1:2:10:95000012:4:95000013:1:95000014:1:95000016:0:95000017:0
3:1:1:1:1:10:10:2:1:1:2:10:10:8:0
1:1:1:1:1:12:20:2
2:1:1:1:1:12:10:0:11:0
";
    assert_eq!(trace.prv.split_once('\n').expect("header").1, expected);
}

#[test]
fn records_out_of_order_are_sorted() {
    let trace = Trace::of(
        &recorded(&[(0, 30, slice(0, 1, 20)), (0, 10, state(State::Idle, 5))]),
        &info(1, 1, 40),
    );
    trace.assert_clean();
    assert!(trace.comments().is_empty(), "{:?}", trace.comments());
    assert_eq!(trace.records("1:1:1:1:1:20"), ["1:1:1:1:1:20:30:1"]);
}

#[test]
fn clock_that_stands_still_makes_no_endless_line() {
    let events: Vec<_> = (0..1_000).map(|count| (0, 7, value(0, count))).collect();
    let trace = Trace::of(&recorded(&events), &info(1, 1, 9));
    let report = trace.assert_clean();
    assert_eq!(report.counts().event_values, 1_000);
    assert!(trace.prv.lines().all(|line| line.len() < 1_200));
}
