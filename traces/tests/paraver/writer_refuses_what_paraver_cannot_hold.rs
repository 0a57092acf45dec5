//! Limits of the writer, on both sides, and that a refusal leaves no files.

use crate::support::{info, recorded, slice};
use talpf_traces::{Error, Event, MessageKind, Recorder, Result, TraceFiles, TraceInfo, WaitNs};

fn write(recorder: &Recorder, stem: &str, info: &TraceInfo) -> Result<TraceFiles> {
    let dir = tempfile::tempdir().expect("temporary directory");
    let result = recorder.write_paraver(dir.path(), stem, info);
    let files = std::fs::read_dir(dir.path()).expect("directory").count();
    assert_eq!(files, if result.is_ok() { 3 } else { 0 });
    result
}

#[test]
fn threads_fit_into_16_bits() {
    let nothing = Recorder::default();
    assert!(write(&nothing, "run", &info(65_535, 1, 1)).is_ok());
    assert!(matches!(
        write(&nothing, "run", &info(32_768, 2, 1)),
        Err(Error::TooManyThreads { threads: 65_536, limit: 65_535, .. })
    ));
    assert!(matches!(write(&nothing, "run", &info(0, 2, 1)), Err(Error::NoThreads { .. })));
    assert!(matches!(write(&nothing, "run", &info(2, 0, 1)), Err(Error::NoThreads { .. })));
}

#[test]
fn ranks_and_workers_must_exist() {
    let recorder = recorded(&[(1, 5, slice(2, 1, 5))]);
    assert!(write(&recorder, "run", &info(3, 2, 9)).is_ok());
    assert!(matches!(
        write(&recorder, "run", &info(2, 2, 9)),
        Err(Error::RankOutOfRange { rank: 2, ranks: 2, worker: 1, time_ns: 5 })
    ));
    assert!(matches!(
        write(&recorder, "run", &info(3, 1, 9)),
        Err(Error::WorkerOutOfRange { worker: 1, workers: 1 })
    ));
    let waited = WaitNs::default();
    let send =
        Event::Send { kind: MessageKind::Put, rank: 0, peer: 7, message: 0, bytes: 0, waited };
    assert!(matches!(
        write(&recorded(&[(0, 5, send)]), "run", &info(7, 1, 9)),
        Err(Error::RankOutOfRange { rank: 7, .. })
    ));
}

#[test]
fn times_are_exact_as_doubles() {
    let last = 1 << 53;
    assert!(write(&recorded(&[(0, last, slice(0, 1, 0))]), "run", &info(1, 1, last)).is_ok());
    for (time_ns, end_ns) in [(last + 1, 0), (0, last + 1)] {
        let result = write(&recorded(&[(0, time_ns, slice(0, 1, 0))]), "run", &info(1, 1, end_ns));
        assert!(matches!(result, Err(Error::TimeOutOfRange { .. })));
    }
}

#[test]
fn stem_is_a_file_name() {
    let nothing = Recorder::default();
    assert!(write(&nothing, "run.1", &info(1, 1, 1)).is_ok());
    for stem in ["", ".", "..", "a/b", "a/"] {
        assert!(matches!(write(&nothing, stem, &info(1, 1, 1)), Err(Error::Stem { .. })), "{stem}");
    }
}

#[test]
fn failure_of_the_file_system_names_the_file() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let file = dir.path().join("file");
    std::fs::write(&file, "").expect("file");
    match Recorder::default().write_paraver(&file, "run", &info(1, 1, 1)) {
        Err(Error::Io { path, .. }) => assert_eq!(path, file),
        other => panic!("{other:?}"),
    }
    let missing = dir.path().join("none.prv");
    let error = talpf_traces::paraver::check(&missing).expect_err("no such file");
    assert!(error.to_string().contains("none.prv"), "{error}");
}
