//! Use of `tracing` by the libraries: at rare points, never on the path of a task, a put or a record.

use crate::assert_none;
use crate::repository::rust_files;

/// Files that may name it: the layer of spans, and what is said of a run as a whole.
const SPEAK: [&str; 7] = [
    "ibverbs-sim/src/control_plane.rs",
    "runtime/src/control_plane.rs",
    "runtime/src/scheduler/spans.rs",
    "runtime/src/scheduler/worker_spans.rs",
    "runtime/src/spans.rs",
    "talpf/src/control_plane.rs",
    "tampi-shim/src/control_plane.rs",
];

/// Folders of libraries.
const LIBRARIES: [&str; 7] = [
    "runtime/src/",
    "runtime/primitives/src/",
    "talpf/src/",
    "tampi-shim/src/",
    "ibverbs-sim/src/",
    "lpf-c/src/",
    "traces/src/",
];

#[test]
fn hot_files_do_not_speak_tracing() {
    let mut findings = Vec::new();
    for file in rust_files() {
        let is_library = LIBRARIES.iter().any(|folder| file.path.starts_with(folder));
        if !is_library || SPEAK.contains(&file.path.as_str()) {
            continue;
        }
        let lexed = file.lexed();
        let names = ["tracing", "tracing_subscriber", "tracing_core"];
        let spoken = lexed.words().filter(|(_, word)| names.contains(word));
        findings.extend(spoken.map(|(line, word)| format!("{}:{line}: {word}", file.path)));
    }
    assert_none(&findings, "only rare events are said through tracing");
}
