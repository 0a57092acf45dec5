//! Runs in processes that no launcher of ours has started, and which meet at a server.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::launch::started;
use crate::libfabric::transports;
use crate::{command, error_of, stdout_of, talpf, value};

/// Run that lasts until something ends it.
const ENDLESS: &str = "jacobi --size 32 --block 8 --steps 1000000000 --quiet";

const JACOBI: &str = "jacobi --rows 37 --cols 23 --block 8 --steps 9 --quiet";

/// Returns an address of this machine that was free a moment ago. Its port is below those that the
/// system gives to connections, one of which might take it before a server does.
pub(crate) fn free_address() -> String {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id().wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed));
        let port = 16_384 + (number % 16_384) as u16;
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return listener.local_addr().unwrap().to_string();
        }
    }
}

/// Returns every fabric of this machine whose processes can be killed one by one.
fn fabrics() -> Vec<&'static str> {
    [&["tcp", "shm"][..], &transports()].concat()
}

/// Starts a process with the secret.
pub(crate) fn start(run: &str, secret: &str) -> Child {
    let mut command = command(&run.split_whitespace().collect::<Vec<_>>());
    command.env("TALPF_SECRET", secret).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Runs processes, each with options of its own, and returns their outputs.
fn run_all(runs: &[String]) -> Vec<Output> {
    let children: Vec<_> = runs.iter().map(|run| start(run, "of the test")).collect();
    children.into_iter().map(|child| child.wait_with_output().unwrap()).collect()
}

pub(crate) fn place(server: &str, process: usize, processes: usize) -> String {
    format!("--server {server} --process {process} --processes {processes}")
}

#[test]
fn processes_that_meet_at_a_server_are_serial() {
    for (fabric, transport) in [("", "shm"), ("--fabric tcp", "tcp"), ("--fabric shm", "shm")] {
        let server = free_address();
        let run = |process| format!("{JACOBI} --check {fabric} {}", place(&server, process, 3));
        // Whoever comes first waits for process 0, which has the server.
        let outputs = run_all(&[run(2), run(1), run(0)]);
        let text = stdout_of(&outputs[2]);
        assert_eq!((value(&text, "ranks"), value(&text, "transport")), ("3", transport));
        assert!(value(&text, "verified").starts_with("yes"), "{text}");
        assert!(outputs[..2].iter().all(|output| stdout_of(output).is_empty()));
    }
}

#[test]
fn what_differs_between_processes_ends_all_of_them() {
    let server = free_address();
    let first = format!("{JACOBI} {}", place(&server, 0, 2));
    for (second, expected) in [
        (format!("{JACOBI} {}", place(&server, 0, 2)), "cannot listen at "),
        (format!("{JACOBI} {}", place(&server, 1, 3)), "expects 3 processes, not 2"),
        (format!("{JACOBI} --fabric tcp {}", place(&server, 1, 2)), "is to be connected by "),
        (format!("{} {}", JACOBI.replace("37", "38"), place(&server, 1, 2)), "has rows 3"),
        (format!("histogram --quiet {}", place(&server, 1, 2)), "has application "),
    ] {
        let runs = [format!("{first} --timeout 2"), second];
        let errors: Vec<_> = run_all(&runs).iter().map(error_of).collect();
        assert!(errors.iter().any(|error| error.contains(expected)), "{errors:?}");
    }
}

#[test]
fn a_number_that_comes_twice_and_one_that_does_not_come_are_named() {
    let server = free_address();
    let run = |process| format!("{JACOBI} --timeout 2 {}", place(&server, process, 3));
    let twice = run_all(&[run(0), run(1), run(1)]);
    for error in twice.iter().map(error_of) {
        assert!(error.starts_with("process 1 has come twice, from "), "{error}");
    }
    let missing = run_all(&[run(0), run(2)]);
    for error in missing.iter().map(error_of) {
        assert_eq!(error, "process 1 of 3 has not come in time");
    }
}

#[test]
fn a_process_with_another_secret_is_named() {
    let server = free_address();
    let run = |process| format!("{JACOBI} {}", place(&server, process, 2));
    let children = [start(&run(0), "one"), start(&run(1), "another")];
    for child in children {
        let error = error_of(&child.wait_with_output().unwrap());
        assert!(error.starts_with("process 1 at 127.0.0.1:"), "{error}");
        assert!(error.ends_with(" has another secret"), "{error}");
    }
}

#[test]
fn a_place_that_makes_no_sense_is_refused() {
    for (options, expected) in [
        ("--server localhost:1 --process 0", "--processes"),
        ("--process 0", "--server"),
        ("--timeout 3", "--timeout is not supported with --transport verbs"),
        ("--peer-timeout 3", "--peer-timeout is not supported with --transport verbs"),
        ("--progress thread", "--progress is not supported with --transport verbs"),
        ("--progress nobody", "[possible values: workers, thread]"),
        ("--peer-timeout 0", "expected a whole number from 1 to 86400"),
        ("--server h:1 --process 2 --processes 2", "process 2 of 2: numbers are from 0 to 1"),
        ("--server h:1 --process 0 --processes 2000", "from 1 to 1024"),
        ("--server nowhere --process 0 --processes 2", "cannot listen at nowhere: "),
        (
            "--server nowhere --process 1 --processes 2 --timeout 1",
            "cannot reach the server at nowhere: ",
        ),
        (
            "--server h:1 --process 0 --processes 2 --transport verbs",
            "--transport verbs is not supported with --server",
        ),
    ] {
        let error = error_of(&talpf(&format!("{JACOBI} {options}")));
        assert!(error.contains(expected), "{options}: {error}");
    }
}

#[test]
fn every_survivor_names_a_process_that_is_killed() {
    let queues = "mandelbrot --size 256 --limit 1000 --block 4 --steps 10000 --quiet";
    for (run, fabric) in [ENDLESS, queues]
        .into_iter()
        .flat_map(|run| fabrics().into_iter().map(move |fabric| (run, fabric)))
    {
        for victim in 0..3 {
            let mut children = endless(&format!("{run} --fabric {fabric}"));
            let mut killed = children.remove(victim);
            let begin = Instant::now();
            kill_process(Pid::from_child(&killed), Signal::KILL).unwrap();
            killed.wait().unwrap();
            children.iter_mut().for_each(end_of);
            let seconds = begin.elapsed().as_secs_f64();
            for child in children {
                leaves_nothing(&child);
                let error = error_of(&child.wait_with_output().unwrap());
                let expected = format!("rank {victim} failed: its process has ended");
                assert!(error.contains(&expected), "{run} {fabric}: {error}");
            }
            leaves_nothing(&killed);
            // One second on an idle machine.
            assert!(seconds < 20.0, "{fabric}: {seconds} s");
            println!("{fabric}: all survivors of process {victim} had ended after {seconds:.3} s");
        }
    }
}

/// Checks that nothing in shared memory has the number of a process in its name.
fn leaves_nothing(ended: &Child) {
    let number = ended.id().to_string();
    let is_its = |entry: &fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.split(|sign: char| !sign.is_ascii_digit()).any(|part| part == number)
    };
    let left: Vec<_> = fs::read_dir("/dev/shm").unwrap().flatten().filter(is_its).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_process_that_is_killed_as_it_starts_ends_the_others() {
    for fabric in fabrics() {
        for (victim, milliseconds) in [(0, 5), (2, 20), (1, 40), (2, 80)] {
            let server = free_address();
            let mut children = three(&format!("{ENDLESS} --timeout 2 --fabric {fabric}"), &server);
            thread::sleep(Duration::from_millis(milliseconds));
            children[victim].kill().unwrap();
            let begin = Instant::now();
            children.iter_mut().for_each(end_of);
            println!(
                "{fabric}: {:.3} s after the kill at {milliseconds} ms",
                begin.elapsed().as_secs_f64()
            );
            children.remove(victim).wait().unwrap();
            for child in children {
                let error = error_of(&child.wait_with_output().unwrap());
                let names = [
                    format!("process {victim}"),
                    format!("rank {victim} failed: its process has ended"),
                ];
                // Without process 0 there is no server, which is all that the others know of it.
                let is_named = names.iter().any(|name| error.contains(name))
                    || victim == 0 && error.contains(&server);
                assert!(is_named, "{fabric}, {victim} after {milliseconds} ms: {error}");
            }
        }
    }
}

#[test]
fn a_process_that_is_killed_as_the_others_end_is_named_or_not_missed() {
    for fabric in fabrics() {
        for victim in 0..3 {
            let mut children = three(&format!("{JACOBI} --fabric {fabric}"), &free_address());
            let mut killed = children.remove(victim);
            let has_ended = |child: &mut Child| child.try_wait().unwrap().is_some();
            while !children.iter_mut().any(has_ended) && !has_ended(&mut killed) {
                thread::yield_now();
            }
            killed.kill().unwrap();
            killed.wait().unwrap();
            children.iter_mut().for_each(end_of);
            for child in children {
                let output = child.wait_with_output().unwrap();
                let error = String::from_utf8_lossy(&output.stderr);
                let is_named =
                    error.contains(&format!("rank {victim} failed: its process has ended"));
                assert!(output.status.success() || is_named, "{fabric}, {victim}: {error}");
            }
        }
    }
}

/// Starts three processes of a run, which meet at a server.
fn three(run: &str, server: &str) -> Vec<Child> {
    let start = |process| start(&format!("{run} {}", place(server, process, 3)), "s");
    (0..3).map(start).collect()
}

/// Starts three processes of a run, and waits for their workers.
fn endless(run: &str) -> Vec<Child> {
    let mut children = three(run, &free_address());
    children.iter_mut().for_each(started);
    children
}

/// Waits until a process has ended.
fn end_of(child: &mut Child) {
    while child.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Runs the checks of a fabric in a thread with its name, which a panic shows.
fn beside<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    fabric: &str,
    checks: impl FnOnce() + Send + 'scope,
) {
    thread::Builder::new().name(fabric.to_owned()).spawn_scoped(scope, checks).unwrap();
}

#[test]
fn every_survivor_names_a_process_that_is_stopped() {
    thread::scope(|scope| {
        for fabric in fabrics() {
            beside(scope, fabric, move || {
                [0, 2].into_iter().for_each(|victim| survivors_name_a_stopped(fabric, victim));
            });
        }
    });
}

/// Stops a process until the others have given it up, which they are to say.
fn survivors_name_a_stopped(fabric: &str, victim: usize) {
    let mut children = endless(&format!("{ENDLESS} --fabric {fabric} --peer-timeout 2"));
    let mut stopped = children.remove(victim);
    let begin = Instant::now();
    kill_process(Pid::from_child(&stopped), Signal::STOP).unwrap();
    children.iter_mut().for_each(end_of);
    let seconds = begin.elapsed().as_secs_f64();
    let expected = format!("rank {victim} failed: its process has shown no life");
    for child in children {
        let error = error_of(&child.wait_with_output().unwrap());
        assert!(error.contains(&expected), "{fabric}: {error}");
    }
    // 3 s on an idle machine.
    assert!((2.0..20.0).contains(&seconds), "{fabric}: {seconds} s");
    println!("{fabric}: all survivors of process {victim} had ended after {seconds:.3} s");
    // It learns that the others have given it up.
    kill_process(Pid::from_child(&stopped), Signal::CONT).unwrap();
    end_of(&mut stopped);
    let error = error_of(&stopped.wait_with_output().unwrap());
    assert!(error.contains(" failed: "), "{fabric}: {error}");
}

#[test]
fn a_process_that_is_stopped_for_less_than_the_timeout_changes_nothing() {
    thread::scope(|scope| {
        for fabric in fabrics() {
            beside(scope, fabric, move || a_short_stop_changes_nothing(fabric));
        }
    });
}

/// Stops a process for less than the others wait for it, which must go on.
fn a_short_stop_changes_nothing(fabric: &str) {
    let mut children = endless(&format!("{ENDLESS} --fabric {fabric} --peer-timeout 20"));
    let stopped = Pid::from_child(&children[1]);
    kill_process(stopped, Signal::STOP).unwrap();
    thread::sleep(Duration::from_millis(1500));
    kill_process(stopped, Signal::CONT).unwrap();
    thread::sleep(Duration::from_millis(500));
    let ended = children.iter_mut().any(|child| child.try_wait().unwrap().is_some());
    children.iter_mut().for_each(|child| child.kill().unwrap());
    let outputs = children.into_iter().map(|child| child.wait_with_output().unwrap());
    let errors = outputs.map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
    assert!(!ended, "{fabric}: {:?}", errors.collect::<Vec<_>>());
}
