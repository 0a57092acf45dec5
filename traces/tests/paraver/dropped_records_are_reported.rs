//! A stream that reaches its limit keeps what it has, and the trace says what
//! is missing.

use crate::support::{Trace, info, slice, state};
use talpf_traces::paraver::Rule;
use talpf_traces::{Recorder, State};

fn run(limit: usize) -> Trace {
    let recorder = Recorder::new(limit);
    let mut stream = recorder.stream(0);
    stream.record(20, slice(0, 1, 10));
    stream.record(40, slice(0, 2, 30));
    stream.record(50, slice(0, 3, 45));
    stream.record(60, state(State::Polling, 55));
    stream.record(80, slice(0, 4, 5));
    drop(stream);
    Trace::of(&recorder, &info(1, 1, 70))
}

#[test]
fn full_stream_shows_nothing_known_from_there_to_the_end_of_the_run() {
    let trace = run(2);
    let report = trace.check();
    assert_eq!((report.errors(), report.breaches(Rule::Incomplete)), (0, report.warnings()));
    assert_eq!(report.warnings(), 1, "{report}");
    assert_eq!(trace.comments(), ["worker 0: 1 records dropped, its stream was full at 2"]);
    let of_outer = |from, to| format!("1:1:1:1:1:{from}:{to}:1");
    assert_eq!(
        trace.records("1:"),
        ["1:1:1:1:1:0:5:2", &of_outer(5, 50), "1:1:1:1:1:50:80:15"],
        "slices that were open end where recording stopped"
    );
    assert!(trace.records("2:1:1:1:1:50:")[0].ends_with(":10:0:11:0"), "{}", trace.prv);
}

#[test]
fn stream_filled_to_its_limit_is_complete() {
    let trace = run(5);
    trace.assert_clean();
    assert!(trace.comments().is_empty());
    assert_eq!(trace.records("1:").last(), Some(&"1:1:1:1:1:60:80:1"));
}

#[test]
fn streams_that_are_still_open_are_mentioned() {
    let recorder = Recorder::default();
    let mut stream = recorder.stream(0);
    stream.record(1, slice(0, 1, 0));
    stream.flush();
    stream.record(2, slice(0, 2, 1));
    let trace = Trace::of(&recorder, &info(1, 1, 9));
    assert_eq!(trace.comments()[0], "1 streams were still open: their last records may be missing");
    assert_eq!(trace.records("2:").len(), 2, "what was flushed, and its end");
    drop(stream);
    assert_eq!(recorder.record_count(), 2);
}
