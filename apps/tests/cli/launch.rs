//! Runs in processes of this machine, and their ends.

use std::fs;
use std::io::Read;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::{command, error_of, stdout_of, talpf, value};

const PATIENCE: Duration = Duration::from_secs(60);

/// Variants of Jacobi that run in processes.
pub(crate) const ONE_SIDED: [&str; 7] = [
    "lpf",
    "talpf-default",
    "talpf-cached",
    "talpf-cached-barrier",
    "talpf-cached-ack",
    "talpf-msg",
    "talpf-raw-cached",
];

fn launch(processes: usize, run: &str) -> std::process::Output {
    talpf(&format!("launch -n {processes} -- {run}"))
}

#[test]
fn every_one_sided_variant_is_serial_in_processes() {
    for transport in ["shm", "tcp"] {
        let jacobi = "jacobi --rows 37 --cols 23 --block 8 --steps 9";
        for variant in ONE_SIDED {
            for processes in [1, 2, 3] {
                is_serial(processes, &format!("{jacobi} --variant {variant}"), transport);
            }
        }
        for (processes, run) in [
            (4, "jacobi --size 40 --block 8 --steps 9 --grid 2x2"),
            (3, "jacobi --rows 37 --cols 23 --block 8 --steps 9 --replay"),
            (
                3,
                "gauss-seidel --rows 37 --cols 23 --block 8 --single-blocks --steps 5 --variant talpf-lanes",
            ),
            (
                3,
                "gauss-seidel --rows 37 --cols 23 --block 8 --single-blocks --steps 5 --variant talpf-notify",
            ),
            (2, "nbody --particles 101 --block 10 --steps 2"),
            (2, "matmul --size 61 --block 8 --iterations 2 --variant talpf-get"),
            (4, "matmul-g --size 29 --block 8 --iterations 2 --variant talpf-get"),
            (3, "histogram --numbers 3000 --bins 50 --steps 2"),
            (3, "kmeans --points 3000 --clusters 50 --steps 2"),
            (3, "mandelbrot --size 64 --limit 100 --steps 2"),
        ] {
            is_serial(processes, run, transport);
        }
    }
}

/// Checks that a run in processes gives the bits of the serial one, over the transport.
#[track_caller]
fn is_serial(processes: usize, run: &str, transport: &str) {
    let run = format!("{run} --transport {transport} --check --quiet");
    let text = stdout_of(&launch(processes, &run));
    assert!(value(&text, "verified").starts_with("yes"), "{processes} x {run}: {text}");
    assert_eq!(value(&text, "ranks"), processes.to_string(), "{run}");
    let said = if processes == 1 { "none, one process" } else { transport };
    assert_eq!(value(&text, "transport"), said, "{run}");
}

#[test]
fn a_thread_serves_other_processes_on_demand() {
    for transport in ["shm", "tcp"] {
        for (progress, said) in
            [("", false), ("--progress workers", false), ("--progress thread", true)]
        {
            let run = "jacobi --rows 37 --cols 23 --block 8 --steps 9 --check --quiet";
            let text = stdout_of(&launch(2, &format!("{run} --transport {transport} {progress}")));
            assert!(value(&text, "verified").starts_with("yes"), "{transport} {progress}: {text}");
            assert_eq!(text.contains("progress"), said, "{text}");
        }
    }
}

#[test]
fn the_metrics_of_processes_have_the_tickets_of_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let (file, settings) = (folder.path().join("run.json"), folder.path().join("settings.toml"));
    // As in a release build: a run that checks for conflicts has no tickets.
    fs::write(&settings, "check_conflicts = false\n").unwrap();
    // Edges of 8 KiB are put by tickets, and those of 2 KiB travel with their claims.
    for (cols, has_tickets) in [(1024, true), (256, false)] {
        let run = format!("jacobi --rows 12 --cols {cols} --block 1024 --steps 50 --quiet");
        let files = format!("--runtime-config {} --json {}", settings.display(), file.display());
        stdout_of(&launch(3, &format!("{run} {files}")));
        let json: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let tickets = &json["metrics"]["tickets"];
        let of = |end: &str| tickets[end].as_u64().unwrap_or_else(|| panic!("{end}: {json}"));
        assert_eq!(of("used") > 0, has_tickets, "{tickets}");
        assert!(of("used") + of("late") + of("unused") <= of("given"), "{tickets}");
    }
    stdout_of(&talpf(&format!("jacobi --size 40 --steps 5 --quiet --json {}", file.display())));
    let json: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert!(json["metrics"]["tickets"].is_null(), "one process: {json}");
}

#[test]
fn processes_of_one_machine_share_memory_unless_asked_for_tcp() {
    for run in ["", "--transport auto", "--fabric auto"] {
        let text = stdout_of(&launch(2, &format!("jacobi --size 40 --steps 9 --quiet {run}")));
        assert_eq!(value(&text, "transport"), "shm");
    }
}

#[test]
fn a_process_has_several_ranks() {
    for run in [
        "-n 2 --ranks-per-process 2 -- jacobi --size 40 --steps 9",
        "-n 2 -- gauss-seidel --size 40 --steps 9 --ranks 4 --transport tcp",
        "-n 3 -- nbody --particles 61 --block 10 --steps 3 --ranks 6 --replay",
        "-n 2 --ranks-per-process 2 -- matmul-g --size 29 --block 8 --iterations 2",
        "-n 2 -- jacobi --size 40 --steps 9 --ranks 6 --variant lpf",
    ] {
        let text = stdout_of(&talpf(&format!("launch {run} --quiet --check")));
        let ranks = if run.contains("--ranks 6") { "6" } else { "4" };
        assert_eq!(value(&text, "ranks"), ranks, "{run}");
        assert!(value(&text, "verified").starts_with("yes"), "{run}: {text}");
    }
    let error = error_of(&talpf("launch -n 2 --ranks-per-process 2 -- jacobi --ranks 4"));
    assert!(error.contains("--ranks"), "{error}");
}

#[test]
fn a_launch_that_cannot_be_is_refused_before_it_starts() {
    for (arguments, expected) in [
        ("launch -n 0 -- jacobi", "expected a whole number from 1 to 1024"),
        ("launch -n 2", "<APP>"),
        ("launch -n 2 -- nothing", "unrecognized subcommand 'nothing'"),
        ("launch -n 2 -- jacobi --block x", "--block"),
        ("launch -n 2 -- info", "launch starts applications, which have ranks, but not info"),
        ("launch -n 2 -- launch -n 2 -- jacobi", "but not launch"),
        (
            "jacobi --transport shm",
            "--transport shm is for processes that `talpf launch -n P -- APP`",
        ),
        ("jacobi --transport tcp", "--transport tcp is for processes"),
        ("compare jacobi --out /nowhere --transport shm", "compare runs all ranks in one process"),
    ] {
        let error = error_of(&talpf(arguments));
        assert!(error.contains(expected), "{arguments}: {error}");
    }
}

#[test]
fn what_processes_cannot_do_is_an_error_of_theirs() {
    for (run, expected) in [
        ("jacobi --variant tampi", "tampi is not supported with --transport auto"),
        ("jacobi --variant serial", "variant serial has no ranks to run as processes"),
        ("jacobi --ranks 3", "ranks is 3, expected a multiple of 2, the number of processes"),
        ("jacobi --graph /nowhere", "--graph is not supported with --transport auto"),
        (
            "jacobi --server h:1 --process 0 --processes 2",
            "--server is not supported with talpf launch",
        ),
        ("jacobi --transport verbs", "talpf launch has started 2 processes"),
        ("jacobi --transport mpi", "--transport mpi is not supported with talpf launch"),
        ("jacobi --size 1", "ranks is 2, expected at most 1"),
    ] {
        let output = launch(2, run);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && output.stdout.is_empty(), "{run}: {errors}");
        assert!(errors.contains(expected), "{run}: {errors}");
    }
}

#[test]
fn a_variable_that_makes_no_sense_is_an_error_and_one_of_another_process_is_not() {
    let run = |value: String| {
        let mut command = command(&["jacobi", "--size", "40", "--steps", "3", "--quiet"]);
        command.env("TALPF_LAUNCH", value).output().unwrap()
    };
    for wrong in ["", "2", "1,2,2,h:1,s,5", "1,0,2,h:1,s,5,6", "1,0,4000,h:1,s,5"] {
        let error = error_of(&run(wrong.to_owned()));
        assert!(error.starts_with(&format!("TALPF_LAUNCH is {wrong:?}, expected ")), "{error}");
    }
    // The first process of the machine has not started this one.
    assert_eq!(value(&stdout_of(&run("1,0,3,h:1,s,5".to_owned())), "workers"), cores());
}

fn cores() -> String {
    thread::available_parallelism().unwrap().to_string()
}

/// Starts a run that lasts until something ends it, with options of the launcher, and waits for its
/// processes.
pub(crate) fn endless(processes: usize, options: &[&str]) -> (Child, Vec<Pid>) {
    let n = processes.to_string();
    let run = "-- jacobi --size 32 --block 8 --steps 1000000000 --quiet";
    let mut command = command(&["launch", "-n", &n]);
    command.args(options).args(run.split(' '));
    let launcher = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let children = started_by(&launcher, processes);
    (launcher, children)
}

/// Waits until the processes of a launcher have workers.
pub(crate) fn started_by(launcher: &Child, processes: usize) -> Vec<Pid> {
    let begin = Instant::now();
    loop {
        let children = children_of(launcher.id());
        if children.len() == processes && children.iter().all(|&process| has_workers(process)) {
            return children;
        }
        assert!(begin.elapsed() < PATIENCE, "{} have started", children.len());
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the processes that a process has started, in order.
pub(crate) fn children_of(process: u32) -> Vec<Pid> {
    let mut children = Vec::new();
    for task in fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten() {
        let list = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        children.extend(list.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)));
    }
    children.sort_by_key(|process| process.as_raw_pid());
    children
}

/// Waits until a process has workers.
pub(crate) fn started(child: &mut Child) {
    let begin = Instant::now();
    while !has_workers(Pid::from_child(child)) {
        if let Some(status) = child.try_wait().unwrap() {
            let mut error = String::new();
            if let Some(stderr) = &mut child.stderr {
                stderr.read_to_string(&mut error).unwrap();
            }
            panic!("it has ended with {status}: {error}");
        }
        assert!(begin.elapsed() < PATIENCE, "it has not started");
        thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn has_workers(process: Pid) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", process.as_raw_pid()));
    tasks.into_iter().flatten().flatten().any(|task| {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        name.starts_with("talpf-worker")
    })
}

/// Waits until none of the processes runs.
pub(crate) fn all_end(processes: &[Pid]) {
    let begin = Instant::now();
    let runs = |process: &Pid| {
        let status = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_pid()));
        status.is_ok_and(|status| !status.contains(") Z "))
    };
    while processes.iter().any(runs) {
        assert!(begin.elapsed() < PATIENCE, "a process goes on");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_process_that_is_killed_ends_the_run_and_is_named() {
    let (launcher, processes) = endless(3, &[]);
    kill_process(processes[1], Signal::KILL).unwrap();
    let output = launcher.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.ends_with("error: process 1 of 3 was ended by signal 9\n"), "{errors}");
    all_end(&processes);
}

#[test]
fn a_launcher_that_ends_ends_its_processes() {
    let all = [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL];
    let keep_going = (Signal::INT, &["--keep-going"][..]);
    for (signal, options) in all.map(|signal| (signal, &[][..])).into_iter().chain([keep_going]) {
        let (launcher, processes) = endless(2, options);
        kill_process(Pid::from_child(&launcher), signal).unwrap();
        let output = launcher.wait_with_output().unwrap();
        if signal != Signal::KILL {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(130), "{signal:?}: {errors}");
            assert!(errors.ends_with("error: interrupted\n"), "{signal:?}: {errors}");
        }
        all_end(&processes);
    }
}
