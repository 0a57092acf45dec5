//! BSC's command `ptd`, a second reader of Paraver's format, finds nothing wrong with our traces, and what it
//! makes of them is free of errors.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use talpf_traces::paraver::check;
use talpf_traces::{Event, MessageKind, Recorder, State, WaitNs};
use tempfile::TempDir;

use crate::support::{info, slice, state};

/// Runs `ptd` in the folder of a trace, and returns its text.
fn ptd(arguments: &[&str], prv: &Path) -> String {
    let program = env::var_os("TALPF_PTD").expect("TALPF_PTD");
    let output = Command::new(program)
        .current_dir(prv.parent().unwrap())
        .args(arguments)
        .arg(prv)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

/// Writes a run of 1 ms on two workers of two ranks, with tasks of 10 us, idleness and messages.
fn run(folder: &Path) -> PathBuf {
    let recorder = Recorder::default();
    let (kind, waited) = (MessageKind::Put, WaitNs::between(0, 100));
    let [mut first, mut second] = [0, 1].map(|worker| recorder.stream(worker));
    for step in 0..50 {
        let begin_ns = step * 20_000;
        first.record(begin_ns + 10_000, slice(0, 2 * step + 1, begin_ns));
        let send = Event::Send { kind, rank: 0, peer: 1, message: step, bytes: 64, waited };
        first.record(begin_ns + 10_100, send);
        first.record(begin_ns + 19_000, state(State::Idle, begin_ns + 11_000));
        second.record(begin_ns + 10_000, slice(1, 2 * step + 2, begin_ns));
        let receive = Event::Receive { rank: 1, peer: 0, message: step, lane: 0, round: 0 };
        second.record(begin_ns + 12_000, receive);
    }
    drop((first, second));
    recorder.write_paraver(folder, "run", &info(2, 2, 1_000_000)).unwrap().prv
}

#[test]
#[ignore = "needs TALPF_PTD, the command ptd of the Python package pertalde"]
fn ptd_finds_nothing_wrong() {
    let folder = TempDir::new().unwrap();
    let prv = run(folder.path());
    assert_eq!(ptd(&["comprovar", "-e"], &prv), "");
}

#[test]
#[ignore = "needs TALPF_PTD, the command ptd of the Python package pertalde"]
fn parts_that_ptd_makes_have_no_errors() {
    let folder = TempDir::new().unwrap();
    let prv = run(folder.path());
    ptd(&["tallar", "--start", "200000", "--end", "700000"], &prv);
    // Records that take at least 5 us, in a folder beside the trace.
    ptd(&["separar", "-u", "5"], &prv);
    let partials = fs::read_dir(folder.path().join("run.partials")).unwrap();
    let partials = partials.map(|entry| entry.unwrap().path());
    let useful = partials.filter(|path| path.to_string_lossy().ends_with("useful_5us.prv"));
    let mut parts: Vec<_> = useful.collect();
    parts.push(folder.path().join("run.chop.prv"));
    assert_eq!(parts.len(), 2, "{parts:?}");
    for part in parts {
        let report = check(&part).unwrap();
        assert_eq!(report.errors(), 0, "{report}");
        assert!(report.counts().records > 0, "{report}");
    }
}
