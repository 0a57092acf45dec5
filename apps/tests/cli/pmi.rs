//! Processes that a launcher with PMI has started: a scripted one, and the `mpirun` of MPICH.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::thread;

use crate::pmi_server::PmiServer;
use crate::{command, error_of, stdout_of, value};

const JACOBI: &str = "jacobi --rows 37 --cols 23 --block 8 --steps 9 --check --quiet";

/// Returns the command of a process, whose standard input leads to its launcher.
fn process(arguments: &str, rank: usize, size: usize, launcher: Option<UnixStream>) -> Command {
    let mut command = command(&arguments.split_whitespace().collect::<Vec<_>>());
    command.env("PMI_FD", "0").env("PMI_RANK", rank.to_string()).env("PMI_SIZE", size.to_string());
    command.stdin(launcher.map_or(Stdio::null(), |stream| OwnedFd::from(stream).into()));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs processes under the scripted launcher, each with arguments of its own.
fn run(version: u32, arguments: &[&str]) -> Vec<Output> {
    let size = arguments.len();
    let server = Arc::new(PmiServer::new(version, size));
    let children = arguments.iter().enumerate().map(|(rank, arguments)| {
        let (here, there) = UnixStream::pair().unwrap();
        let server = Arc::clone(&server);
        thread::spawn(move || server.serve(here, rank));
        process(arguments, rank, size, Some(there)).spawn().unwrap()
    });
    let children: Vec<_> = children.collect();
    children.into_iter().map(|child| child.wait_with_output().unwrap()).collect()
}

#[test]
fn processes_of_a_launcher_with_pmi_are_serial() {
    for version in [1, 2] {
        for (options, transport) in [("", "shm"), ("--transport tcp", "tcp")] {
            let run_of_each = format!("{JACOBI} {options}");
            let outputs = run(version, &[&*run_of_each; 3]);
            let text = stdout_of(&outputs[0]);
            assert_eq!((value(&text, "ranks"), value(&text, "transport")), ("3", transport));
            assert!(value(&text, "verified").starts_with("yes"), "{text}");
            assert!(outputs[1..].iter().all(|output| stdout_of(output).is_empty()));
        }
    }
}

#[test]
fn processes_with_other_settings_or_variants_for_mpi_are_refused() {
    let outputs = run(1, &[JACOBI, &JACOBI.replace("37", "38")]);
    for error in outputs.iter().map(error_of) {
        assert!(error.contains(" has rows 38"), "{error}");
    }
    for (arguments, expected) in [
        ("jacobi --variant tampi", "mpirun has started 2 processes"),
        ("jacobi --transport verbs", "mpirun has started 2 processes"),
        ("compare jacobi --out /nowhere", "mpirun has started 2 processes"),
        ("jacobi --ranks 3", "ranks is 3, expected a multiple of 2, the number of processes"),
        ("jacobi --graph /nowhere", "--graph is not supported with --transport auto"),
    ] {
        let (_launcher, there) = UnixStream::pair().unwrap();
        let error = error_of(&process(arguments, 0, 2, Some(there)).output().unwrap());
        assert!(error.contains(expected), "{arguments}: {error}");
    }
}

#[test]
fn an_environment_that_makes_no_sense_names_its_variables() {
    let with = |variables: &[(&str, &str)]| {
        let mut command = command(&JACOBI.split_whitespace().collect::<Vec<_>>());
        error_of(&command.envs(variables.iter().copied()).output().unwrap())
    };
    for (variables, expected) in [
        (&[("PMI_RANK", "1")][..], "PMI_RANK is \"1\", without PMI_FD and PMI_SIZE"),
        (&[("PMI_SIZE", "2")], "PMI_SIZE is \"2\", without PMI_FD and PMI_RANK"),
        (
            &[("PMI_FD", "77"), ("PMI_RANK", "0"), ("PMI_SIZE", "2")],
            "PMI_FD is \"77\", which is no open socket",
        ),
        (
            &[("PMI_FD", "77"), ("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("PMIX_RANK", "1")],
            "PMI_RANK is \"0\", but PMIX_RANK is \"1\"",
        ),
    ] {
        let error = with(variables);
        assert!(error.contains(expected), "{variables:?}: {error}");
    }
}

#[test]
fn two_launchers_that_disagree_are_named() {
    let mut launch = command(&["launch", "-n", "2", "--", "jacobi", "--quiet"]);
    launch.env("PMI_RANK", "0").env("PMI_SIZE", "3").env("PMI_FD", "1");
    // The processes of a launcher of ours inherit the variables, and the standard output.
    let (_launcher, there) = UnixStream::pair().unwrap();
    let output = launch.stdout(OwnedFd::from(there)).stderr(Stdio::piped()).spawn().unwrap();
    let output = output.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let expected = " of 2, but PMI_RANK is \"0\" and PMI_SIZE is \"3\"";
    assert!(!output.status.success() && errors.contains(expected), "{errors}");
}

#[test]
fn a_child_of_a_rank_is_not_that_rank() {
    let mut parent = Command::new("sh");
    let line = format!("{} {JACOBI} --ranks 2; exit $?", env!("CARGO_BIN_EXE_talpf"));
    parent.args(["-c", &line]).env("PMI_FD", "77").env("PMI_RANK", "1").env("PMI_SIZE", "2");
    let text = stdout_of(&parent.stdin(Stdio::null()).output().unwrap());
    assert_eq!(value(&text, "ranks"), "2");
    assert!(!text.contains("transport"), "{text}");
}

#[test]
fn a_run_under_the_mpirun_of_mpich_needs_no_mpi() {
    let started = Command::new("mpirun.mpich").arg("--version").output();
    if !started.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: mpirun.mpich is not installed");
        return;
    }
    for size in ["1", "3"] {
        let mut command = Command::new("mpirun.mpich");
        command.args(["-n", size, env!("CARGO_BIN_EXE_talpf")]).args(JACOBI.split_whitespace());
        let text = stdout_of(&command.stdin(Stdio::null()).output().unwrap());
        assert!(value(&text, "verified").starts_with("yes"), "{text}");
        if size == "3" {
            assert_eq!((value(&text, "ranks"), value(&text, "transport")), ("3", "shm"));
        }
    }
}
