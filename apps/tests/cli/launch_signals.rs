//! Signals to a launcher, which each process gets as they are.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

use crate::command;
use crate::launch::{all_end, endless, started_by};
use crate::machines::started_below;

const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the lines of the error stream of a launcher as they come.
fn lines(launcher: &mut Child) -> Receiver<String> {
    let errors = launcher.stderr.take().unwrap();
    let (sender, lines) = channel();
    thread::spawn(move || {
        BufReader::new(errors).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    lines
}

/// Checks that both processes of a run write their tasks as a graph on a signal to the launcher.
fn both_dump(launcher: &Child, lines: &Receiver<String>) {
    let signal = || kill_process(Pid::from_child(launcher), Signal::USR2).unwrap();
    signal();
    let (mut first, mut second) = (false, false);
    while !(first && second) {
        let line = lines.recv_timeout(PATIENCE).expect("a dump of both processes");
        // A line of one process may stand in the middle of one of the other.
        if line.ends_with("[1] digraph tasks {") {
            second = true;
        } else if line.ends_with("digraph tasks {") {
            first = true;
        } else if line.ends_with("no tasks yet") {
            signal();
        }
    }
}

/// Ends a launcher with SIGTERM, and waits for its processes.
fn end(mut launcher: Child, processes: &[Pid]) {
    kill_process(Pid::from_child(&launcher), Signal::TERM).unwrap();
    assert_eq!(launcher.wait().unwrap().code(), Some(130));
    all_end(processes);
}

#[test]
fn each_process_dumps_its_tasks_and_goes_on() {
    let (mut launcher, processes) = endless(2, &[]);
    let lines = lines(&mut launcher);
    for _ in 0..2 {
        both_dump(&launcher, &lines);
    }
    end(launcher, &processes);
}

#[test]
fn a_command_that_passes_no_signals_on_runs_processes_that_get_them() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("hosts"), "here 2\n").unwrap();
    // A shell that would die of the signals, as `ssh` would.
    fs::write(folder.path().join("script"), "shift; \"$@\"; exit $?\n").unwrap();
    let run = "-- jacobi --size 32 --block 8 --steps 1000000000 --quiet";
    let mut command = command(&["launch", "--address", "127.0.0.1", "--hosts", "hosts"]);
    command.args(["--via", "sh script {host}"]).args(run.split(' ')).current_dir(&folder);
    let mut launcher = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let processes = started_below(&launcher, 2);
    let lines = lines(&mut launcher);
    both_dump(&launcher, &lines);
    end(launcher, &processes);
}

#[test]
fn a_run_that_ignores_a_hangup_goes_on() {
    let run = "launch -n 2 -- jacobi --size 32 --block 8 --steps 1000000000 --quiet";
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_talpf")]);
    command.args(run.split(' ')).stdin(Stdio::null()).stdout(Stdio::null());
    let mut launcher = command.stderr(Stdio::piped()).spawn().unwrap();
    let processes = started_by(&launcher, 2);
    let lines = lines(&mut launcher);
    kill_process(Pid::from_child(&launcher), Signal::HUP).unwrap();
    for _ in 0..2 {
        both_dump(&launcher, &lines);
    }
    end(launcher, &processes);
}

#[test]
fn a_quit_is_the_end_of_each_process() {
    // This process leaves no core either.
    let hard = getrlimit(Resource::Core).maximum;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: hard }).unwrap();
    let (launcher, processes) = endless(2, &[]);
    kill_process(Pid::from_child(&launcher), Signal::QUIT).unwrap();
    let output = launcher.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.ends_with(" of 2 was ended by signal 3\n"), "{errors}");
    all_end(&processes);
}
