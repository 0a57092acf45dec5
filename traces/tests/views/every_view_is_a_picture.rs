//! Each view for Paraver is a picture too, with the numbers of the summary.

use std::path::{Path, PathBuf};

use talpf_traces::{
    Event, Format, MessageKind, Recorder, RenderOptions, State, Summary, View, WaitNs, render,
};
use tempfile::TempDir;

use crate::support::{info, sample::sample, state};

/// Two ranks on two workers, 1,000 ns: tasks of worker 0 last 500 and 100 ns, that of worker 1 lasts 300 ns,
/// and rank 0 puts twice to rank 1.
fn trace() -> (TempDir, PathBuf) {
    let recorder = Recorder::default();
    let [stencil, edge] = ["stencil", "edge"].map(|label| recorder.label(label));
    let slice = |rank, task, label, began_ns| Event::TaskSlice {
        starts: true,
        rank,
        task,
        label,
        began_ns,
    };
    let (kind, waited) = (MessageKind::Put, WaitNs::between(0, 10));
    let send = |message, bytes| Event::Send { kind, rank: 0, peer: 1, message, bytes, waited };
    let mut worker = recorder.stream(0);
    worker.record(500, slice(0, 1, stencil, 0));
    worker.record(520, send(1, 4_096));
    worker.record(540, send(2, 8));
    worker.record(600, slice(0, 2, edge, 500));
    drop(worker);
    let mut worker = recorder.stream(1);
    worker.record(300, slice(1, 3, stencil, 0));
    worker.record(650, state(State::Idle, 400));
    for (time_ns, message) in [(700, 1), (740, 2)] {
        worker.record(time_ns, Event::Receive { rank: 1, peer: 0, message, lane: 0, round: 0 });
    }
    drop(worker);
    let folder = TempDir::new().unwrap();
    let files = recorder.write_paraver(folder.path(), "run", &info(2, 2, 1_000)).unwrap();
    (folder, files.prv)
}

fn svg(prv: &Path, view: &str) -> String {
    let view: View = view.parse().unwrap();
    let mut bytes = Vec::new();
    let options = RenderOptions { view, ..RenderOptions::default() };
    render(prv, &options).unwrap().write(Format::Svg, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Returns the texts of a picture.
fn texts(picture: &str) -> Vec<&str> {
    let lines = picture.lines().filter_map(|line| line.strip_suffix("</text>"));
    lines.filter_map(|line| Some(line.rsplit_once('>')?.1)).collect()
}

fn has(prv: &Path, view: &str, wanted: &[&str]) {
    let picture = svg(prv, view);
    let texts = texts(&picture);
    for text in wanted {
        assert!(texts.contains(text), "{view} has no `{text}`: {texts:?}");
    }
}

#[test]
fn names_are_those_of_the_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cfg");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut names: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "cfg"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    let mut views: Vec<&str> = View::names().collect();
    views.sort_unstable();
    assert_eq!(views, names);
}

#[test]
fn every_view_shows_our_traces_and_others() {
    let (folder, prv) = trace();
    let other = folder.path().join("other.prv");
    std::fs::write(&other, sample().prv).unwrap();
    for name in View::names() {
        for prv in [&prv, &other] {
            assert!(svg(prv, name).ends_with("</svg>\n"), "{name}");
        }
    }
}

#[test]
fn histograms_have_the_numbers_of_the_summary() {
    let (_folder, prv) = trace();
    let summary = Summary::of(&prv).unwrap();
    for (name, task) in &summary.tasks {
        let slices = task.slices.count.to_string();
        let time = format!("{} ns", task.slices.total_ns);
        has(&prv, "task-type-slices", &[name, &slices, "r0 w0", "all"]);
        has(&prv, "task-type-time", &[name, &time]);
        has(&prv, "tasks-started", &[name, &task.tasks.to_string()]);
    }
    has(&prv, "task-type-average", &["400 ns"]);
    assert!(summary.states.contains_key("Running") && summary.states.contains_key("Idle"));
    for (name, state) in &summary.states {
        has(&prv, "states-time", &[name, &format!("{} ns", state.total_ns)]);
    }
}

#[test]
fn matrices_have_the_numbers_of_the_summary() {
    let (_folder, prv) = trace();
    let pairs = Summary::of(&prv).unwrap().messages.pairs;
    assert_eq!(pairs.len(), 1);
    for pair in pairs {
        let names = ["rank 0", "rank 1", "to 0", "to 1"];
        has(&prv, "bytes-matrix", &[&names[..], &[&pair.bytes.to_string()]].concat());
        has(&prv, "messages-matrix", &[&names[..], &[&pair.messages.to_string()]].concat());
    }
}

#[test]
fn sums_are_over_all_that_is_open_at_a_time() {
    let (_folder, prv) = trace();
    // Both workers compute for 300 ns, one for 300 more, none for the other 400.
    has(&prv, "parallelism", &["all ranks", "2", "0"]);
    has(&prv, "tasks-running", &["all ranks", "2", "0"]);
    has(&prv, "parallelism-profile", &["all ranks", "0", "1", "2", "400 ns"]);
    // Both puts are under way from 540 to 700 ns.
    has(&prv, "messages-in-flight", &["2"]);
    has(&prv, "bytes-in-flight", &["4104"]);
}

#[test]
fn durations_have_their_unit() {
    let (_folder, prv) = trace();
    // The state of two tasks in a row is one.
    has(&prv, "useful-duration", &["300 ns", "600 ns"]);
    has(&prv, "put-latency", &["200 ns"]);
    has(
        &prv,
        "useful-duration-histogram",
        &["each column is a range that begins with the time below it"],
    );
}

#[test]
fn a_view_without_values_says_so() {
    let (_folder, prv) = trace();
    for view in ["steps", "idle-because", "sync-mode-time", "rounds-open"] {
        has(&prv, view, &["the trace has none of these values in this time"]);
    }
}
