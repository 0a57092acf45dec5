//! Signals to a run: it dumps its tasks and goes on, or ends and leaves its recordings.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tempfile::tempdir;

use crate::command;

const PATIENCE: Duration = Duration::from_secs(60);

/// Run that lasts until it is killed, by a guard if not by the test.
struct Endless {
    child: Child,
    errors: BufReader<ChildStderr>,
    over: Sender<()>,
}

impl Drop for Endless {
    fn drop(&mut self) {
        let _ = self.over.send(());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Endless {
    fn start(outputs: &[&str]) -> Self {
        let run = "jacobi --size 32 --block 8 --steps 1000000000 --ranks 2 --quiet";
        let mut command = command(&run.split(' ').collect::<Vec<_>>());
        command.args(outputs);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let (id, (over, ends)) = (child.id(), channel());
        std::thread::spawn(move || {
            if ends.recv_timeout(2 * PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").args(["-KILL", &id.to_string()]).status();
            }
        });
        Self { child, errors, over }
    }

    /// Sends a signal as soon as the process catches it.
    fn signal(&mut self, name: &str, number: u32) {
        let deadline = Instant::now() + PATIENCE;
        while !self.catches(number) {
            assert!(Instant::now() < deadline, "SIG{name} is not caught");
            std::thread::yield_now();
        }
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    fn catches(&self, number: u32) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap() >> (number - 1) & 1 == 1
    }

    /// Sends signals until an answer has a line that `ends` it. Returns the output up to there.
    fn answer(&mut self, name: &str, number: u32, ends: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        self.signal(name, number);
        let mut answer = String::new();
        loop {
            assert!(Instant::now() < deadline, "no answer but:\n{answer}");
            let mut line = String::new();
            assert!(self.errors.read_line(&mut line).unwrap() > 0, "it ended:\n{answer}");
            if line == "no tasks yet\n" {
                self.signal(name, number);
                continue;
            }
            answer.push_str(&line);
            if ends(&line) {
                return answer;
            }
            if line.contains(" in a task; ") {
                // This dump may end without such a line.
                self.signal(name, number);
            }
        }
    }
}

#[test]
fn a_signal_shows_the_tasks_of_every_rank_as_text() {
    let mut run = Endless::start(&[]);
    for _ in 0..3 {
        let answer = run.answer("USR1", 10, |line| line.contains(" in a task; "));
        assert!(answer.contains(" in a task; "), "{answer}");
    }
    run.answer("USR1", 10, |line| line.starts_with("  task `"));
    assert!(run.child.try_wait().unwrap().is_none(), "it goes on");
}

#[test]
fn another_signal_shows_them_as_a_graph() {
    let mut run = Endless::start(&[]);
    let answer = run.answer("USR2", 12, |line| line == "}\n");
    assert!(answer.starts_with("digraph tasks {\n"), "{answer}");
}

#[test]
fn a_run_that_is_killed_leaves_no_empty_outputs() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (json, image, graph, trace) = (at("run.json"), at("run.png"), at("run.svg"), at("a/b"));
    let outputs = ["--json", &json, "--image", &image, "--graph", &graph, "--trace", &trace];
    let mut run = Endless::start(&outputs);
    // It catches signals once it has tried its outputs.
    run.answer("USR1", 10, |line| line.contains(" in a task; "));
    drop(run);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_run_that_is_interrupted_leaves_its_recordings() {
    for (variant, name, number) in [("talpf-cached", "INT", 2), ("tampi", "HUP", 1)] {
        let folder = tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (json, graph, trace) = (at("run.json"), at("run.svg"), at("trace"));
        let options = ["--variant", variant, "--json", &json, "--graph", &graph, "--trace", &trace];
        let mut run = Endless::start(&options);
        // The tasks of a program that has begun.
        run.answer("USR1", 10, |line| line.starts_with("  task `jacobi`"));
        run.signal(name, number);
        let mut said = String::new();
        run.errors.read_to_string(&mut said).unwrap();
        assert!(said.ends_with("error: interrupted\n"), "{said}");
        assert_eq!(run.child.wait().unwrap().code(), Some(130));
        assert!(!Path::new(&json).exists(), "there is no result");
        assert!(fs::read_to_string(graph).unwrap().contains("jacobi ("));
        let trace = folder.path().join("trace/jacobi.prv");
        assert!(talpf_traces::paraver::check(&trace).unwrap().is_clean());
        assert!(fs::read_to_string(trace).unwrap().contains("failed: interrupted"));
    }
}

#[test]
fn a_run_without_tasks_dies_of_an_interrupt() {
    let mut run = Endless::start(&["--variant", "serial"]);
    run.signal("INT", 2);
    assert_eq!(run.child.wait().unwrap().signal(), Some(2));
}
