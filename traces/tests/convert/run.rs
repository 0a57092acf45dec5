//! A run whose trace has every kind of record, and what that trace consists of.

use std::fs;
use std::path::{Path, PathBuf};

use talpf_traces::{
    Event, MessageKind, Recorder, State, SyncArrivals, SyncMode, ValueKind, WaitNs,
};
use tempfile::TempDir;

use crate::support::{ended, info, state};

/// Label that each form must quote.
pub(crate) const LABEL: &str = "first \"half\", \\ <1>";

/// Two ranks on two workers, 1,000 ns, with tasks inside tasks, idleness, a sync, requests, and three messages.
pub(crate) fn trace() -> (TempDir, PathBuf) {
    let recorder = Recorder::default();
    let [outer, inner] = [LABEL, "inner"].map(|label| recorder.label(label));
    let mode = SyncMode { arrivals: SyncArrivals::Cached, barrier: false, ack: false };
    let slice = |rank, task, label, began_ns| Event::TaskSlice {
        starts: true,
        rank,
        task,
        label,
        began_ns,
    };
    let (kind, waited) = (MessageKind::Put, WaitNs::between(0, 10));
    let mut worker = recorder.stream(0);
    worker.record(200, slice(0, 2, inner, 100));
    worker.record(500, slice(0, 1, outer, 0));
    for message in 1..=3 {
        let send = Event::Send { kind, rank: 0, peer: 1, message, bytes: 64 * message, waited };
        worker.record(520 + message, send);
    }
    let kind = ValueKind::OutstandingRequests;
    worker.record(530, Event::Value { kind, rank: 0, value: 3 });
    worker.record(700, state(State::Idle, 540));
    drop(worker);
    let mut worker = recorder.stream(1);
    worker.record(300, slice(1, 3, outer, 0));
    worker.record(400, Event::SyncBegin { rank: 1, lane: 0, round: 0, mode, expected: Some(3) });
    for message in 1..=3 {
        worker
            .record(600 + message, Event::Receive { rank: 1, peer: 0, message, lane: 0, round: 0 });
    }
    worker.record(703, ended(1, 0, 0));
    drop(worker);
    let folder = TempDir::new().unwrap();
    let files = recorder.write_paraver(folder.path(), "run", &info(2, 2, 1_000)).unwrap();
    (folder, files.prv)
}

/// Number of things that a trace shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Slices of tasks.
    pub(crate) tasks: usize,
    /// States of rows that exist.
    pub(crate) states: usize,
    /// Messages.
    pub(crate) messages: usize,
}

/// Counts lines and values in the text of a trace.
pub(crate) fn counts(prv: &Path) -> Counts {
    let mut counts = Counts { tasks: 0, states: 0, messages: 0 };
    for line in fs::read_to_string(prv).unwrap().lines() {
        let fields: Vec<&str> = line.split(':').collect();
        match fields[0] {
            "1" if fields[7] != "2" => counts.states += 1,
            "2" => {
                let values = fields[6..].chunks_exact(2);
                counts.tasks += values.filter(|pair| pair[0] == "11" && pair[1] != "0").count();
            }
            "3" => counts.messages += 1,
            _ => {}
        }
    }
    counts
}
