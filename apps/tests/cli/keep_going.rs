//! Processes that outlast the first failure of their run.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use crate::launch::{all_end, children_of, endless};
use crate::{command, error_of};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn others_learn_of_a_failure_from_each_other_and_end_by_themselves() {
    let (launcher, processes) = endless(3, &["--keep-going"]);
    // One that is stopped cannot end before the launcher has seen the failure.
    kill_process(processes[2], Signal::STOP).unwrap();
    kill_process(processes[1], Signal::KILL).unwrap();
    all_end(&processes[..2]);
    kill_process(processes[2], Signal::CONT).unwrap();
    let output = launcher.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.lines().any(|line| line.starts_with("[2] error: rank ")), "{errors}");
    assert!(errors.ends_with("error: process 1 of 3 was ended by signal 9\n"), "{errors}");
}

/// Two machines, which run what a script says in place of processes.
struct Script {
    folder: tempfile::TempDir,
}

impl Script {
    /// Writes a script with what both machines do.
    fn new(first: &str, second: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The version comes from the program itself.
        let text = format!(
            "case \"$1 $3\" in\n'first part') {first} ;;\n'second part') {second} ;;\n\
             *) shift; exec \"$@\" ;;\nesac\n"
        );
        let script = Self { folder };
        fs::write(script.path("script"), text).unwrap();
        fs::write(script.path("hosts"), "first\nsecond\n").unwrap();
        script
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn launch(&self, options: &[&str]) -> Child {
        let mut command = command(&["launch", "--address", "127.0.0.1", "--hosts", "hosts"]);
        command.args(["--via", "sh script {host}"]).args(options).args(["--", "jacobi"]);
        command.current_dir(&self.folder).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }
}

/// Waits until `is_so`, or the launcher has ended.
fn wait_until(launcher: &mut Child, is_so: impl Fn(&Child) -> bool) {
    let begin = Instant::now();
    while launcher.try_wait().unwrap().is_none() && !is_so(launcher) {
        assert!(begin.elapsed() < PATIENCE, "the launcher waits");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_first_code_is_returned_once_all_processes_have_ended() {
    // The second one leaves the launcher time to note the end of the first.
    let script = Script::new(
        "until [ -e begun ]; do sleep 0.01; done; exit 3",
        "touch begun; until [ -e over ]; do sleep 0.01; done; sleep 0.1; echo is over >&2; exit 4",
    );
    let mut launcher = script.launch(&["--keep-going"]);
    wait_until(&mut launcher, |_| script.path("begun").exists());
    wait_until(&mut launcher, |launcher| children_of(launcher.id()).len() == 1);
    fs::write(script.path("over"), "").unwrap();
    let output = launcher.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "[1] is over\n");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn processes_that_do_not_come_end_the_run() {
    let script = Script::new("exec sleep 100", "exec sleep 100");
    let launcher = script.launch(&["--keep-going", "--timeout", "1"]);
    let error = error_of(&launcher.wait_with_output().unwrap());
    assert!(error.contains("have not come in time"), "{error}");
}
