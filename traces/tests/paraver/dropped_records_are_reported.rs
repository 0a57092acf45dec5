//! A stream that reaches its limit keeps what it has, and the trace says what
//! is missing.

use crate::support::{Trace, begin, end, info, outside};
use talpf_traces::{Recorder, State};

fn run(limit: usize) -> Trace {
    let recorder = Recorder::new(limit);
    let mut stream = recorder.stream(0);
    stream.record(10, begin(0, 1));
    stream.record(20, end(0, 1));
    stream.record(30, begin(0, 2));
    stream.record(40, end(0, 2));
    stream.record(50, outside(State::Polling));
    drop(stream);
    Trace::of(&recorder, &info(1, 1, 100))
}

#[test]
fn full_stream_shows_nothing_known_from_there() {
    let trace = run(3);
    trace.assert_clean();
    assert_eq!(trace.comments(), ["worker 0: 2 records dropped, its stream was full at 3"]);
    assert_eq!(
        trace.records("1:").last(),
        Some(&"1:1:1:1:1:40:100:15"),
        "the open slice ends where recording stopped"
    );
    assert_eq!(trace.records("2:").last(), Some(&"2:1:1:1:1:40:10:0:11:0"));
}

#[test]
fn stream_filled_to_its_limit_is_complete() {
    let trace = run(5);
    trace.assert_clean();
    assert!(trace.comments().is_empty());
    assert_eq!(trace.records("1:").last(), Some(&"1:1:1:1:1:50:100:6"));
}

#[test]
fn streams_that_are_still_open_are_mentioned() {
    let recorder = Recorder::default();
    let mut stream = recorder.stream(0);
    stream.record(1, begin(0, 1));
    stream.flush();
    stream.record(2, end(0, 1));
    let trace = Trace::of(&recorder, &info(1, 1, 9));
    assert_eq!(trace.comments()[0], "1 streams were still open: their last records may be missing");
    assert_eq!(trace.records("2:").len(), 2, "what was flushed, and its end");
    drop(stream);
    assert_eq!(recorder.record_count(), 2);
}
