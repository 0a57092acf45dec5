//! The clock of a runtime as the only reader of the time, so that a program runs in any time.

use crate::assert_none;
use crate::repository::rust_files;

/// Names by which a program reads the time past a clock.
const READERS: [&str; 3] = ["Instant", "SystemTime", "quanta"];

/// Files that may read the time: the clock, the date of a run for people, examples of crates that
/// have no clock, and one that times whole processes.
const MAY_READ: [&str; 7] = [
    "runtime/src/clock.rs",
    "apps/src/cli/trace_output.rs",
    "ibverbs-sim/examples/post_poll.rs",
    "lpf-c/src/bsplib/mod.rs",
    "lpf-c/src/machine.rs",
    "talpf/examples/two_processes.rs",
    "traces/examples/record_cost.rs",
];

/// Returns `true` for a test, which waits in the time of the machine, and for a benchmark.
fn is_outside(path: &str) -> bool {
    path.starts_with("benches/") || path.contains("/tests/") || path.ends_with("/tests.rs")
}

#[test]
fn only_the_clock_reads_the_time() {
    let mut findings = Vec::new();
    for file in rust_files().into_iter().filter(|file| !is_outside(&file.path)) {
        let may = MAY_READ.contains(&file.path.as_str());
        let lexed = file.lexed();
        let found = lexed.words().find(|(_, word)| READERS.contains(word));
        match (may, found) {
            (false, Some((line, word))) => findings.push(format!("{}:{line}: {word}", file.path)),
            (true, None) => findings.push(format!("{}: reads no time", file.path)),
            _ => {}
        }
    }
    assert_none(&findings, "time is read from the clock of the runtime");
}
