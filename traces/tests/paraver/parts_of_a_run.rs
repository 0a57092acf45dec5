//! A recorder may keep the end of a run, or a part of it: the rest is `Not recorded`.

use talpf_traces::paraver::Rule;
use talpf_traces::{Event, Extent, Keep, Limits, Recorder, State, TraceInfo, ValueKind, WaitNs};

use crate::support::{Trace, info, slice, state};

const NOT_RECORDED: &str = "15";

fn recorder(records: usize, keep: Keep, extent: Extent) -> Recorder {
    Recorder::with_limits(Limits { records, keep, extent, edges: false, control: false })
}

/// Records a slice of 5 ns every 10 ns up to `end_ns`, inside a slice of another task from 5 ns on.
fn run(recorder: &Recorder, worker: u32, end_ns: u64) {
    let mut stream = recorder.stream(worker);
    for begin_ns in (10..end_ns - 10).step_by(10) {
        stream.record(begin_ns + 5, slice(0, begin_ns, begin_ns));
    }
    stream.record(end_ns - 5, slice(0, 1, 5));
}

fn trace(recorder: &Recorder, info: &TraceInfo) -> Trace {
    let trace = Trace::of(recorder, info);
    let report = trace.check();
    assert_eq!(report.errors(), 0, "{report}");
    assert_eq!(report.warnings(), report.breaches(Rule::Incomplete), "{report}");
    trace
}

/// Returns the times at which the first row is in a state.
fn times(trace: &Trace, state: &str) -> Vec<(u64, u64)> {
    let states = trace.records("1:1:1:1:1:");
    let fields = states.iter().map(|line| line.split(':').collect::<Vec<_>>());
    let in_state = fields.filter(|fields| fields[7] == state);
    in_state.map(|fields| (fields[5].parse().unwrap(), fields[6].parse().unwrap())).collect()
}

#[test]
fn the_last_records_are_kept() {
    let recorder = recorder(10, Keep::Last, Extent::Whole);
    run(&recorder, 0, 1_000);
    let trace = trace(&recorder, &info(1, 1, 1_000));
    // The last nine of the inner slices, and the outer one from there on.
    assert_eq!(times(&trace, NOT_RECORDED), [(0, 895)]);
    assert_eq!(times(&trace, "1"), [(895, 995)]);
    let comments = trace.comments();
    let lost = "worker 0: 89 records dropped, the first ones: its stream keeps 10";
    assert!(comments.contains(&lost), "{comments:?}");
    let started = trace.prv.matches("95000021").count();
    assert_eq!(started, 9, "the outer task began before: {}", trace.prv);
}

#[test]
fn a_limit_that_holds_all_keeps_all() {
    let recorder = recorder(1_000, Keep::Last, Extent::Whole);
    run(&recorder, 0, 1_000);
    let trace = trace(&recorder, &info(1, 1, 1_000));
    assert_eq!(times(&trace, NOT_RECORDED), []);
    assert_eq!(trace.comments(), [""; 0]);
}

#[test]
fn a_window_cuts_what_is_open_at_its_edges() {
    let recorder = recorder(1_000, Keep::First, Extent::Times(200..313));
    run(&recorder, 0, 1_000);
    let trace = trace(&recorder, &info(1, 1, 1_000));
    assert_eq!(times(&trace, NOT_RECORDED), [(0, 200), (313, 1_000)]);
    assert_eq!(times(&trace, "1"), [(200, 313)]);
    assert_eq!(trace.comments(), ["recorded from 200 ns to 313 ns only"]);
    assert_eq!(trace.check().warnings(), 0, "nothing is lost");
}

#[test]
fn a_window_beyond_the_run_has_nothing() {
    for extent in [Extent::Times(5_000..6_000), Extent::Rounds { rounds: 7..9, ranks: 1 }] {
        let recorder = recorder(1_000, Keep::First, extent);
        run(&recorder, 0, 1_000);
        let trace = trace(&recorder, &info(1, 1, 1_000));
        assert_eq!(times(&trace, NOT_RECORDED), [(0, 1_000)], "{}", trace.prv);
    }
}

#[test]
fn rounds_are_kept_from_the_first_rank_to_the_last() {
    let extent = Extent::Rounds { rounds: 1..2, ranks: 2 };
    let recorder = recorder(1_000, Keep::First, extent);
    let ended = |rank, round| {
        let (posted, arrived) = (WaitNs::default(), WaitNs::default());
        Event::SyncEnd { rank, lane: 0, round, posted, arrived }
    };
    let mut stream = recorder.stream(0);
    let value = |rank| Event::Value { rank, kind: ValueKind::PollCompletions, value: 1 };
    for (time, event) in [
        (50, value(0)),
        (100, ended(0, 0)),
        (150, value(0)),
        (200, ended(1, 0)),
        (300, ended(0, 1)),
        (350, state(State::Polling, 340)),
        (400, ended(1, 1)),
        (450, value(1)),
        (500, ended(0, 2)),
    ] {
        stream.record(time, event);
    }
    drop(stream);
    let trace = trace(&recorder, &info(2, 1, 600));
    assert_eq!(times(&trace, NOT_RECORDED), [(0, 100), (400, 600)]);
    assert_eq!(times(&trace, "6"), [(340, 350)]);
    let rounds = trace.prv.matches(":95000005:").count();
    assert_eq!(rounds, 4, "{}", trace.prv);
}
