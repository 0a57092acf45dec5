//! Traces and metrics of runs in several processes.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use rustix::process::{Signal, kill_process};
use serde_json::Value;
use talpf_traces::paraver::Reader;
use talpf_traces::{Summary, paraver};
use tempfile::tempdir;

use crate::launch::started_by;
use crate::{command, stdout_of, talpf_with, value};

const JACOBI: &str = "jacobi --size 64 --block 16 --steps 25 --quiet";

fn launch(options: &str, run: &str, folder: &Path) -> Output {
    let line = format!("launch {options} -- {run} --trace");
    let folder = folder.to_str().unwrap();
    talpf_with(&line.split(' ').chain([folder]).collect::<Vec<_>>())
}

/// Checks that all traces in a folder are clean, and returns their number.
#[track_caller]
fn clean(folder: &Path) -> usize {
    let files = paraver::check_folder(folder).unwrap();
    for (path, report) in &files {
        assert!(report.is_clean(), "{}: {report}", path.display());
    }
    files.len()
}

fn comments(prv: &Path) -> Vec<String> {
    let text = fs::read_to_string(prv).unwrap();
    text.lines().filter_map(|line| line.strip_prefix("# ")).map(str::to_owned).collect()
}

/// Returns the number before `unit` in the first comment with `text`.
fn number_in(comments: &[String], text: &str, unit: &str) -> Option<u64> {
    let (_, rest) = comments.iter().find_map(|comment| comment.split_once(text))?;
    rest.split_once(unit)?.0.trim().parse().ok()
}

#[test]
fn messages_are_those_of_one_process() {
    for (options, run, ranks) in [
        ("-n 2", JACOBI, 2),
        ("-n 4", JACOBI, 4),
        ("-n 2 --ranks-per-process 2", JACOBI, 4),
        (
            "-n 2",
            "gauss-seidel --size 64 --block 16 --single-blocks --steps 9 --variant talpf-lanes --quiet",
            2,
        ),
        ("-n 2", "matmul --size 40 --block 8 --iterations 2 --variant talpf-get --quiet", 2),
    ] {
        let one = tempdir().unwrap();
        let line = format!("{run} --ranks {ranks} --trace {}", one.path().display());
        stdout_of(&talpf_with(&line.split(' ').collect::<Vec<_>>()));
        let stem = run.split(' ').next().unwrap();
        let expected = Summary::of(one.path().join(format!("{stem}.prv"))).unwrap();
        for transport in ["shm", "tcp"] {
            let folder = tempdir().unwrap();
            let run = format!("{run} --transport {transport}");
            let text = stdout_of(&launch(options, &run, folder.path()));
            let prv = folder.path().join(format!("{stem}.prv"));
            assert!(value(&text, "trace").starts_with(prv.to_str().unwrap()), "{text}");
            let processes = options[3..4].parse::<usize>().unwrap();
            assert_eq!(clean(folder.path()), 1 + processes, "{run}");
            let summary = Summary::of(&prv).unwrap();
            assert_eq!(summary.messages.pairs, expected.messages.pairs, "{options} {run}");
            assert_eq!(summary.messages.kinds, expected.messages.kinds, "{options} {run}");
            let comments = comments(&prv);
            let bound = number_in(&comments, "corrected, within", "ns").expect("a bound");
            let moved = number_in(&comments, "preceded their send, by", "ns at most");
            assert!(moved.is_none_or(|most| most <= bound), "{comments:?}");
            assert!(!comments.iter().any(|text| text.contains("none of these")), "{comments:?}");
            // One node, cpus counted on, and a rank only in its process.
            assert_eq!(Reader::open(&prv).unwrap().ranks(), ranks, "{run}");
        }
    }
}

#[test]
fn a_killed_process_costs_its_rows_only() {
    let folder = tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    // That of an earlier run would be taken for its own.
    fs::write(folder.path().join("jacobi.rank-1.prv"), "old").unwrap();
    // Many others fail one after the other. None of that may end the first one,
    // which joins their traces.
    let line = "launch -n 6 -- jacobi --size 96 --block 16 --steps 1000000000 --quiet --trace";
    let mut command = command(&line.split(' ').chain([path]).collect::<Vec<_>>());
    let launcher = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let processes = started_by(&launcher, 6);
    std::thread::sleep(std::time::Duration::from_millis(300));
    kill_process(processes[1], Signal::KILL).unwrap();
    let output = launcher.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("warning: "), "{errors}");
    assert!(
        errors.contains("jacobi.prv lacks process 1: there is no trace of it here"),
        "{errors}"
    );
    assert!(errors.ends_with("error: process 1 of 6 was ended by signal 9\n"), "{errors}");
    assert_eq!(clean(folder.path()), 6);
    let summary = Summary::of(folder.path().join("jacobi.prv")).unwrap();
    let running: Vec<bool> =
        summary.ranks.iter().map(|rank| rank.states_ns.contains_key("Running")).collect();
    assert_eq!(running, [true, false, true, true, true, true]);
}

#[test]
fn options_of_traces_hold_in_each_process() {
    for (options, says) in [
        ("--trace-limit 400K", Some("records dropped, its stream was full at")),
        ("--trace-limit 400K --trace-keep last", Some("records dropped, the first ones")),
        ("--trace-steps 3..6", Some("recorded from ")),
        ("--trace-window 0ms..1ms", Some("recorded from 0 ns to 1000000 ns only")),
        ("--trace-spill", None),
    ] {
        let parent = tempdir().unwrap();
        // All processes make it.
        let folder = parent.path().join("a/b");
        let run = format!("{} {options}", JACOBI.replace("25", "700"));
        let output = launch("-n 2 --ranks-per-process 2", &run, &folder);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found = comments(&folder.join("jacobi.prv"));
        for process in 0..2 {
            let begin = format!("process {process}: ");
            let is_said = |says: &str| {
                found.iter().any(|text| text.starts_with(&begin) && text.contains(says))
            };
            assert!(says.is_none_or(is_said), "{options}: {found:?}");
        }
        for (path, report) in paraver::check_folder(&folder).unwrap() {
            assert_eq!(report.errors(), 0, "{options} {}: {report}", path.display());
        }
        let names = fs::read_dir(&folder).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 9, "{options}: {names:?}");
    }
}

#[test]
fn a_report_is_of_all_processes() {
    let folder = tempdir().unwrap();
    let run = format!("{JACOBI} --report");
    let text = stdout_of(&launch("-n 2", &run, folder.path()));
    let report = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(value(&text, "report").ends_with("report.html") && report.contains("rank 1"));
}

#[test]
fn metrics_are_those_of_all_processes() {
    let folder = tempdir().unwrap();
    let metrics = |run: &str, name: &str| -> Value {
        let json = folder.path().join(name);
        let line = format!("{run} --workers 2 --json {}", json.display());
        stdout_of(&talpf_with(&line.split(' ').collect::<Vec<_>>()));
        let json: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
        json["metrics"].clone()
    };
    let one = metrics(&format!("{JACOBI} --ranks 2"), "one.json");
    let all = metrics(&format!("launch -n 2 -- {JACOBI}"), "all.json");
    assert_eq!(all["idle_s"].as_array().unwrap().len(), 4, "{all}");
    // Results are gathered by tasks, too.
    let created = |metrics: &Value| metrics["tasks_created"].as_u64().unwrap();
    assert!(created(&all) >= created(&one), "{all}, in one process {one}");
}
