//! A run whose records go to a file.

use std::fs;
use std::path::{Path, PathBuf};

use talpf_traces::{
    Event, Extent, Keep, Limits, MessageKind, Recorder, State, SyncMode, TraceFiles, TraceInfo,
    ValueKind, WaitNs, paraver,
};
use tempfile::TempDir;

/// Number of ranks and of workers.
pub(crate) const RANKS: u32 = 2;

/// Folder of a run, with the file of its records and its trace.
pub(crate) struct Folder {
    dir: TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self { dir: TempDir::new().expect("temporary directory") }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn spill(&self) -> PathBuf {
        self.dir.path().join("run.spill")
    }

    /// Creates a recorder that writes to the file.
    pub(crate) fn recorder(&self, records: usize) -> Recorder {
        let limits = Limits {
            records,
            keep: Keep::First,
            extent: Extent::Whole,
            edges: false,
            control: false,
        };
        Recorder::spilling(limits, &self.spill(), &info()).expect("spill file")
    }
}

pub(crate) fn info() -> TraceInfo {
    TraceInfo {
        ranks: RANKS,
        workers: RANKS,
        started: "26/11/2026 at 12:00".to_owned(),
        comments: vec!["a run".to_owned()],
        ..TraceInfo::default()
    }
}

/// Records steps of 100 ns, each with a slice, a message and a sync of each rank, and a level.
pub(crate) fn record(recorder: &Recorder, steps: u64) {
    let label = recorder.label("kernel");
    let mut streams = [0, 1].map(|worker| recorder.stream(worker));
    for step in 0..steps {
        let at = step * 100;
        for (rank, stream) in (0..).zip(&mut streams) {
            let peer = 1 - rank;
            let mode = SyncMode::all().nth(4).expect("a mode");
            let task = step * 2 + u64::from(rank) + 1;
            let mut note = |after, event| stream.record(at + after, event);
            note(5, Event::SyncBegin { rank, lane: 0, round: step, mode, expected: Some(1) });
            note(50, Event::TaskSlice { starts: true, rank, task, label, began_ns: at + 10 });
            let (kind, waited) = (MessageKind::Put, WaitNs::between(0, 3));
            note(55, Event::Send { kind, rank, peer, message: step, bytes: 8, waited });
            note(60, Event::Receive { rank, peer, message: step, lane: 0, round: step });
            let (posted, arrived) = (WaitNs::between(0, 3), WaitNs::default());
            note(65, Event::SyncEnd { rank, lane: 0, round: step, posted, arrived });
            note(70, Event::Value { rank, kind: ValueKind::TasksNotDone, value: 1 });
            note(90, Event::StateSlice { state: State::Polling, began_ns: at + 80 });
        }
    }
}

/// Returns the texts of a trace, which passes the linter.
pub(crate) fn clean(files: &TraceFiles) -> [String; 3] {
    let report = paraver::check(&files.prv).expect("readable trace");
    assert!(report.is_clean(), "{report}");
    texts(files)
}

pub(crate) fn texts(files: &TraceFiles) -> [String; 3] {
    [&files.prv, &files.pcf, &files.row].map(|path| fs::read_to_string(path).expect("text"))
}
