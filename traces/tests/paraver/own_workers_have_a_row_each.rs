//! Ranks with workers of their own: a cpu and a row for each of them.

use talpf_traces::{Error, Event, Recorder, TraceInfo, ValueKind};

use crate::support::{Trace, info, recorded, slice};

fn own(ranks: u32, workers: u32, end_ns: u64) -> TraceInfo {
    TraceInfo { own_workers: true, ..info(ranks, workers, end_ns) }
}

#[test]
fn a_row_shows_its_worker_all_the_time() {
    let step = Event::Value { rank: 1, kind: ValueKind::TimedPart, value: 1 };
    let trace = Trace::of(
        &recorded(&[
            (1, 20, slice(0, 1, 10)),
            (2, 30, slice(1, 2, 0)),
            (3, 25, slice(1, 3, 15)),
            // Of another rank than the one whose worker it is.
            (0, 12, step),
        ]),
        &own(2, 2, 40),
    );
    trace.assert_clean();
    let header = trace.prv.lines().next().unwrap();
    assert!(header.ends_with("_ns:1(4):1:2(2:1,2:1)"), "{header}");
    let running: Vec<_> =
        trace.records("1:").into_iter().filter(|line| line.ends_with(":1")).collect();
    assert_eq!(running, ["1:3:1:2:1:0:30:1", "1:2:1:1:2:10:20:1", "1:4:1:2:2:15:25:1"]);
    assert_eq!(trace.records("2:3:1:2:1:12:"), ["2:3:1:2:1:12:95000025:1"]);
    let rows = trace.row.unwrap();
    assert!(rows.contains("LEVEL CPU SIZE 4"), "{rows}");
    assert!(rows.ends_with("LEVEL THREAD SIZE 4\nr0 w0\nr0 w1\nr1 w0\nr1 w1\n"), "{rows}");
}

#[test]
fn streams_beyond_the_workers_of_all_ranks_are_refused() {
    let write = |worker| {
        let folder = tempfile::tempdir().unwrap();
        let recorder: Recorder = recorded(&[(worker, 20, slice(1, 1, 10))]);
        recorder.write_paraver(folder.path(), "run", &own(2, 3, 20))
    };
    assert!(write(5).is_ok());
    let error = write(6).unwrap_err();
    assert!(matches!(error, Error::WorkerOutOfRange { worker: 6, workers: 6 }), "{error}");
}
