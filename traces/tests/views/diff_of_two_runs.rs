//! A change is marked where it exceeds the spread inside the traces.

use std::path::PathBuf;

use talpf_traces::{Diff, Event, Recorder, State};
use tempfile::TempDir;

use crate::support::{info, state};

/// Writes a trace of one rank and worker, with tasks of these durations and 10 ns of idleness after each.
fn trace(label: &str, durations_ns: &[u64]) -> (TempDir, PathBuf) {
    let recorder = Recorder::default();
    let label = recorder.label(label);
    let mut worker = recorder.stream(0);
    let mut began_ns = 0;
    for (task, duration_ns) in (1..).zip(durations_ns) {
        let end_ns = began_ns + duration_ns;
        worker.record(end_ns, Event::TaskSlice { starts: true, rank: 0, task, label, began_ns });
        worker.record(end_ns + 10, state(State::Idle, end_ns));
        began_ns = end_ns + 10;
    }
    drop(worker);
    let folder = TempDir::new().unwrap();
    let files = recorder.write_paraver(folder.path(), "run", &info(1, 1, began_ns)).unwrap();
    (folder, files.prv)
}

fn diff(first: &[u64], second: &[u64]) -> Diff {
    let [(_first, first), (_second, second)] = [first, second].map(|of| trace("stencil", of));
    Diff::of(first, second).unwrap()
}

#[test]
fn a_change_beyond_the_spread_is_marked() {
    // Quartiles 60 and 100: a spread of 40 ns around 80.
    let first = [60, 60, 80, 100, 100];
    for (by, is_marked) in [(0, false), (40, false), (41, true)] {
        let diff = diff(&first, &first.map(|duration| duration + by));
        let change = diff.tasks["stencil"];
        assert_eq!((change.median_change_ns, change.spread_ns), (by as i64, 40), "{diff}");
        assert_eq!(change.is_marked, is_marked, "{diff}");
        assert_eq!([change.first.count, change.second.count], [5, 5]);
        assert!(!diff.states["Idle"].is_marked);
        assert_eq!(diff.to_string().contains('*'), is_marked, "{diff}");
    }
}

#[test]
fn the_larger_spread_counts_and_a_change_has_a_sign() {
    let (wide, narrow) = ([20, 60, 100, 120, 120], [50; 5]);
    for (first, second, change_ns) in [(wide, narrow, -50), (narrow, wide, 50)] {
        let change = diff(&first, &second).tasks["stencil"];
        assert_eq!((change.median_change_ns, change.spread_ns), (change_ns, 60));
        assert!(!change.is_marked);
    }
}

#[test]
fn what_the_resolution_may_hide_is_not_marked() {
    let change = diff(&[100_000; 4], &[101_500; 4]).tasks["stencil"];
    assert!(!change.is_marked, "{change:?}");
    assert!(diff(&[100_000; 4], &[104_000; 4]).tasks["stencil"].is_marked);
}

#[test]
fn what_one_trace_has_alone_is_marked() {
    let (_old, old) = trace("old", &[50]);
    let (_new, new) = trace("new", &[50]);
    let diff = Diff::of(old, new).unwrap();
    let (old, new) = (diff.tasks["old"], diff.tasks["new"]);
    assert!(old.is_marked && new.is_marked);
    assert_eq!([old.second.count, new.first.count], [0, 0]);
    assert!(!diff.states["Running"].is_marked);
    assert!(diff.to_string().contains("1 -> 0"), "{diff}");
}

#[test]
fn what_is_lost_is_said_of_each_trace() {
    let (_whole, whole) = trace("stencil", &[50]);
    let (folder, part) = trace("stencil", &[50]);
    let text = std::fs::read_to_string(&part).unwrap();
    std::fs::write(&part, text + "# 7 records dropped\n").unwrap();
    let diff = Diff::of(whole, part).unwrap();
    assert_eq!(diff.lost.each_ref().map(Vec::len), [0, 1]);
    assert!(diff.to_string().contains("incomplete, second trace: "), "{diff}");
    drop(folder);
}
