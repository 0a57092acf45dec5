//! A run with everything in it becomes a trace that the linter accepts, line
//! by line as expected.

use crate::support;
use crate::support::{Trace, ended, info, state};
use talpf_traces::{
    Event, MessageKind, Recorder, State, SyncArrivals, SyncMode, ValueKind, WaitNs,
};

#[test]
fn two_ranks_on_two_workers() {
    let recorder = Recorder::default();
    let (stencil, sync) = (recorder.label("stencil"), recorder.label("sync"));
    assert_eq!(recorder.label("stencil"), stencil);
    let mode = SyncMode { arrivals: SyncArrivals::Cached, barrier: false, ack: true };

    let mut first = recorder.stream(0);
    first.record(10, state(State::Idle, 0));
    let waited = WaitNs::between(30, 40);
    first.record(
        40,
        Event::Send { kind: MessageKind::Put, rank: 0, peer: 1, message: 5, bytes: 4096, waited },
    );
    first.record(40, Event::Value { rank: 0, kind: ValueKind::OutstandingRequests, value: 1 });
    first.record(50, Event::task_slice(0, 7, stencil, 10, true));
    drop(first);

    let mut second = recorder.stream(1);
    second.record(20, state(State::Polling, 5));
    second.record(20, Event::SyncBegin { rank: 1, lane: 0, round: 3, mode, expected: Some(1) });
    second.record(60, Event::Receive { rank: 1, peer: 0, message: 5, lane: 0, round: 3 });
    second.record(60, Event::Value { rank: 1, kind: ValueKind::PollCompletions, value: 1 });
    second.record(70, ended(1, 0, 3));
    second.record(80, Event::task_slice(1, 8, sync, 20, true));
    second.record(90, state(State::Blocked, 85));
    drop(second);

    let mut info = info(2, 2, 100);
    info.comments.push("jacobi --mode cached\nseed 1".to_owned());
    let trace = Trace::of(&recorder, &info);
    let expected = "\
#Paraver (21/11/2026 at 02:40):00000000000000000100_ns:1(2):1:2(2:1,2:1)
# jacobi --mode cached_seed 1
1:1:1:1:1:0:10:0
1:2:1:1:2:0:100:2
1:1:1:2:1:0:100:2
1:2:1:2:2:0:5:2
1:2:1:2:2:5:20:6
1:1:1:1:1:10:50:1
2:1:1:1:1:10:10:7:11:2:95000021:2
1:2:1:2:2:20:80:1
2:0:1:2:1:20:95000010:1
2:2:1:2:2:20:10:8:11:3:95000021:3:95000001:7:95000002:1:95000003:4:95000004:1
3:1:1:1:1:30:40:2:1:2:2:70:60:4096:3
2:1:1:1:1:40:95000011:1
1:1:1:1:1:50:100:2
2:1:1:1:1:50:10:0:11:0
2:2:1:2:2:60:95000012:1:95000013:1:95000014:1:95000016:20:95000017:10
2:0:1:2:1:70:95000010:0
2:2:1:2:2:70:95000005:4:95000007:3:95000008:2:95000001:0:95000002:0:95000003:0:95000004:0:95000006:50:95000009:7
1:2:1:2:2:80:85:7
2:2:1:2:2:80:10:0:11:0
1:2:1:2:2:85:90:9
1:2:1:2:2:90:100:2
";
    assert_eq!(trace.prv, expected);

    let report = trace.assert_clean();
    assert!(report.findings().is_empty(), "{report}");
    let counts = report.counts();
    assert_eq!((counts.records, counts.states, counts.events), (21, 11, 9));
    assert_eq!((counts.event_values, counts.communications), (31, 1));
    assert_eq!((counts.ranks, counts.threads, counts.nodes, counts.cpus), (2, 4, 1, 2));
    assert_eq!((counts.duration, counts.unit), (100, "ns"));
}

#[test]
fn empty_run_has_no_workers() {
    let trace = Trace::of(&Recorder::default(), &info(1, 1, 0));
    assert_eq!(trace.records("1:"), ["1:1:1:1:1:0:1:2"]);
    trace.assert_clean();
}

#[test]
fn writing_again_replaces_the_files_and_keeps_the_records() {
    let recorder = support::recorded(&[(0, 5, support::slice(0, 1, 3))]);
    let dir = tempfile::tempdir().expect("temporary directory");
    let nested = dir.path().join("new/traces");
    let first = recorder.write_paraver(&nested, "run", &info(1, 1, 9)).expect("first");
    let second = recorder.write_paraver(&nested, "run", &info(1, 1, 9)).expect("second");
    assert_eq!(first, second);
    let names = std::fs::read_dir(&nested).expect("directory").count();
    assert_eq!(names, 3, "no provisional file stays behind");
}
