//! A run that is asked by a signal says what its tasks do, and goes on.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use crate::command;

const PATIENCE: Duration = Duration::from_secs(60);

/// A run that lasts until it is killed.
struct Endless {
    child: Child,
    errors: BufReader<ChildStderr>,
}

impl Drop for Endless {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Endless {
    fn start() -> Self {
        let run = "jacobi --size 32 --block 8 --steps 1000000000 --ranks 2 --quiet";
        let mut command = command(&run.split(' ').collect::<Vec<_>>());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        Self { child, errors }
    }

    /// Sends a signal once the process would not die of it.
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

    /// Asks until there are tasks, and reads up to a line that `ends` the answer.
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
        }
    }
}

#[test]
fn a_signal_shows_the_tasks_of_every_rank_as_text() {
    let mut run = Endless::start();
    for _ in 0..3 {
        let answer = run.answer("USR1", 10, |line| line.contains("tasks: "));
        assert!(answer.contains(" workers in a task; "), "{answer}");
    }
    run.answer("USR1", 10, |line| line.starts_with("  task `"));
    assert!(run.child.try_wait().unwrap().is_none(), "it goes on");
}

#[test]
fn another_signal_shows_them_as_a_graph() {
    let mut run = Endless::start();
    let answer = run.answer("USR2", 12, |line| line == "}\n");
    assert!(answer.starts_with("digraph tasks {\n"), "{answer}");
}
