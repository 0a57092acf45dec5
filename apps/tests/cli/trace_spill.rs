//! Records that go to a file during the run, and traces of runs that were killed.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use talpf_traces::Summary;
use tempfile::tempdir;

use crate::{command, error_of, stdout_of, talpf_with, value};

const RUN: &str = "jacobi --size 64 --block 16 --ranks 2 --workers 2 --quiet --steps";

fn arguments<'a>(steps: &'a str, folder: &'a Path) -> Vec<&'a str> {
    let folder = folder.to_str().unwrap();
    RUN.split(' ').chain([steps, "--trace-spill", "--trace", folder]).collect()
}

fn recover(folder: &Path) -> std::process::Output {
    talpf_with(&["trace", "recover", folder.to_str().unwrap()])
}

/// Run that is killed at the latest as it drops.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_run_that_ends_leaves_a_trace_alone() {
    let folder = tempdir().unwrap();
    let text = stdout_of(&talpf_with(&arguments("20", folder.path())));
    assert!(value(&text, "trace").ends_with(" 0 dropped)"), "{text}");
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["jacobi.pcf", "jacobi.prv", "jacobi.row"]);
    let summary = Summary::of(folder.path().join("jacobi.prv")).unwrap();
    assert_eq!(summary.tasks["jacobi"].tasks, 20 * 4);
    assert!(summary.lost.is_empty());
}

#[test]
fn a_run_that_is_killed_leaves_a_trace_up_to_half_a_second_before() {
    let folder = tempdir().unwrap();
    let mut command = command(&arguments("1000000000", folder.path()));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = Killed(command.spawn().unwrap());
    let spill = folder.path().join("jacobi.spill");
    let deadline = Instant::now() + Duration::from_secs(60);
    let size = || fs::metadata(&spill).map_or(0, |spill| spill.len());
    let mut began = None;
    while size() < 4 << 20 {
        assert!(Instant::now() < deadline, "{} bytes", size());
        if size() > 0 {
            began.get_or_insert_with(Instant::now);
        }
        std::thread::yield_now();
    }
    // Only the system can kill it, so nothing is written in response.
    run.0.kill().unwrap();
    let lasted = began.unwrap().elapsed();
    run.0.wait().unwrap();
    assert!(!folder.path().join("jacobi.prv").exists());

    let text = stdout_of(&recover(folder.path()));
    assert!(text.contains("jacobi.prv (") && text.ends_with(" records)\n"), "{text}");
    let check = stdout_of(&talpf_with(&["trace", "check", folder.path().to_str().unwrap()]));
    assert!(check.contains("0 errors, 0 warnings"), "{check}");
    let summary = Summary::of(folder.path().join("jacobi.prv")).unwrap();
    let traced = Duration::from_nanos(summary.duration_ns);
    // Other programs may keep the thread that writes from its core.
    assert!(traced + Duration::from_millis(1_500) > lasted, "{traced:?} of {lasted:?}");
    assert!(summary.tasks["jacobi"].tasks > 1_000);
    // The file stays, and a further run replaces it.
    assert!(spill.exists());
    stdout_of(&talpf_with(&arguments("20", folder.path())));
    assert!(!spill.exists());
}

#[test]
fn folders_without_records_are_errors() {
    let folder = tempdir().unwrap();
    let path = folder.path().display();
    let text = error_of(&recover(folder.path()));
    assert_eq!(
        text,
        format!("{path} has no file that ends in .spill: there is nothing to recover")
    );
    let text = error_of(&recover(&folder.path().join("missing")));
    assert!(text.contains("missing") && text.contains("No such file"), "{text}");
    fs::write(folder.path().join("jacobi.spill"), "TALPFSPL\x07\0\0\0").unwrap();
    let text = error_of(&recover(folder.path()));
    assert!(text.ends_with("jacobi.spill has version 7 of its format, expected 2"), "{text}");
}

#[test]
fn the_last_records_are_not_kept_in_a_file() {
    let folder = tempdir().unwrap();
    let arguments = [arguments("20", folder.path()), vec!["--trace-keep", "last"]].concat();
    let output = talpf_with(&arguments);
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("--trace-spill") && text.contains("--trace-keep"), "{text}");
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}
