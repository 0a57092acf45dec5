//! Traces in temporary directories, for the tests of this crate.

#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod sample;

use std::fs;

use talpf_traces::paraver::{Report, check};
use talpf_traces::{Event, LabelId, Recorder, State, TraceInfo, WaitNs};
use tempfile::TempDir;

/// Texts of the three files of a trace.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    pub(crate) prv: String,
    pub(crate) pcf: Option<String>,
    pub(crate) row: Option<String>,
}

impl Trace {
    /// Writes a trace.
    pub(crate) fn of(recorder: &Recorder, info: &TraceInfo) -> Self {
        let dir = TempDir::new().expect("temporary directory");
        let files = recorder.write_paraver(dir.path(), "run", info).expect("trace");
        let read = |path| fs::read_to_string(path).expect("readable trace");
        Self { prv: read(files.prv), pcf: Some(read(files.pcf)), row: Some(read(files.row)) }
    }

    /// Runs the linter.
    pub(crate) fn check(&self) -> Report {
        let dir = TempDir::new().expect("temporary directory");
        let file = |extension| dir.path().join(format!("run.{extension}"));
        fs::write(file("prv"), &self.prv).expect("prv");
        for (extension, text) in [("pcf", &self.pcf), ("row", &self.row)] {
            if let Some(text) = text {
                fs::write(file(extension), text).expect("label file");
            }
        }
        check(file("prv")).expect("readable trace")
    }

    /// Fails with the findings unless the trace is clean.
    #[track_caller]
    pub(crate) fn assert_clean(&self) -> Report {
        let report = self.check();
        assert!(report.is_clean(), "{report}\n{}", self.prv);
        report
    }

    /// Returns the records that start with `kind`, in order.
    pub(crate) fn records(&self, kind: &str) -> Vec<&str> {
        self.prv.lines().filter(|line| line.starts_with(kind)).collect()
    }

    /// Returns the comment lines, without their mark.
    pub(crate) fn comments(&self) -> Vec<&str> {
        self.prv.lines().filter_map(|line| line.strip_prefix("# ")).collect()
    }
}

/// Describes a run of `ranks` on `workers` that ends at `end_ns`.
pub(crate) fn info(ranks: u32, workers: u32, end_ns: u64) -> TraceInfo {
    let started = "21/11/2026 at 02:40".to_owned();
    TraceInfo { ranks, workers, end_ns, started, ..TraceInfo::default() }
}

/// Creates a recorder with these events, each of a worker at a time.
pub(crate) fn recorded(events: &[(u32, u64, Event)]) -> Recorder {
    let recorder = Recorder::default();
    for &(worker, time_ns, event) in events {
        recorder.stream(worker).record(time_ns, event);
    }
    recorder
}

/// Creates the first slice of a task from `began_ns`.
pub(crate) fn slice(rank: u32, task: u64, began_ns: u64) -> Event {
    Event::TaskSlice { starts: true, rank, task, label: LabelId::UNNAMED, began_ns }
}

/// Creates a further slice of a task from `began_ns`.
pub(crate) fn further(rank: u32, task: u64, began_ns: u64) -> Event {
    Event::TaskSlice { starts: false, rank, task, label: LabelId::UNNAMED, began_ns }
}

/// Creates a state from `began_ns`.
pub(crate) fn state(state: State, began_ns: u64) -> Event {
    Event::StateSlice { state, began_ns }
}

/// Creates the end of a sync, 3 ns after all was posted and 2 ns after the last arrival.
pub(crate) fn ended(rank: u32, lane: u32, round: u64) -> Event {
    let (posted, arrived) = (WaitNs::between(0, 3), WaitNs::between(0, 2));
    Event::SyncEnd { rank, lane, round, posted, arrived }
}
