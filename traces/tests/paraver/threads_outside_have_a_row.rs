//! Threads that are no workers share a row, which is there if they have recorded anything.

use talpf_traces::{Error, Event, Recorder, State, Summary, TraceInfo, ValueKind};

use crate::support::{Trace, info, recorded, slice, state};

fn with_main(recorder: &Recorder, rank: u32) {
    let mut stream = recorder.main_stream();
    assert_eq!(stream.worker(), None);
    stream.record(12, Event::Value { rank, kind: ValueKind::Step, value: 1 });
    stream.record(40, state(State::Polling, 30));
}

#[test]
fn the_row_comes_after_those_of_the_workers_of_its_rank() {
    let recorder = recorded(&[(0, 20, slice(0, 1, 10)), (1, 30, slice(1, 2, 0))]);
    with_main(&recorder, 0);
    let trace = Trace::of(&recorder, &info(2, 2, 50));
    trace.assert_clean();
    let header = trace.prv.lines().next().unwrap();
    assert!(header.ends_with("_ns:1(3):1:2(3:1,2:1)"), "{header}");
    assert_eq!(trace.records("2:3:"), ["2:3:1:1:3:12:95000026:1"]);
    let states = ["1:3:1:1:3:0:30:2", "1:3:1:1:3:30:40:6", "1:3:1:1:3:40:50:2"];
    assert_eq!(trace.records("1:3:"), states);
    let rows = trace.row.unwrap();
    assert!(rows.starts_with("LEVEL CPU SIZE 3\nworker 0\nworker 1\nmain\n"), "{rows}");
    assert!(rows.ends_with("LEVEL THREAD SIZE 5\nr0 w0\nr0 w1\nr0 main\nr1 w0\nr1 w1\n"), "{rows}");
}

#[test]
fn ranks_with_records_of_such_threads_have_one_each() {
    let recorder = recorded(&[(0, 20, slice(0, 1, 10)), (3, 30, slice(1, 2, 0))]);
    with_main(&recorder, 1);
    let own = TraceInfo { own_workers: true, ..info(3, 2, 50) };
    let trace = Trace::of(&recorder, &own);
    trace.assert_clean();
    assert!(trace.prv.lines().next().unwrap().ends_with("_ns:1(7):1:3(3:1,3:1,2:1)"));
    assert_eq!(trace.records("2:0:"), ["2:0:1:2:3:12:95000026:1"]);
}

#[test]
fn a_summary_takes_no_such_thread_for_a_worker() {
    let recorder = recorded(&[(0, 50, slice(0, 1, 0))]);
    recorder.main_stream().record(12, Event::value(0, ValueKind::Step, 1));
    let folder = tempfile::tempdir().unwrap();
    let files = recorder.write_paraver(folder.path(), "run", &info(1, 1, 50)).unwrap();
    let summary = Summary::of(files.prv).unwrap();
    assert_eq!((summary.workers, summary.efficiency.parallel), (1, 1.0));
}

#[test]
fn such_rows_count_for_the_limit() {
    let recorder = Recorder::default();
    recorder.stream(0).record(1, slice(0, 1, 0));
    let folder = tempfile::tempdir().unwrap();
    let write = |ranks| recorder.write_paraver(folder.path(), "run", &info(ranks, 3, 10));
    assert!(write(21_845).is_ok());
    with_main(&recorder, 0);
    assert!(write(21_844).is_ok());
    let error = write(21_845).unwrap_err();
    assert!(matches!(error, Error::TooManyThreads { threads: 65_536, .. }), "{error}");
}
