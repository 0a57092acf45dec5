//! Processes that `srun` of SLURM has started: with `--mpi=pmi2` under a scripted launcher, and without, where
//! they meet at a server.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::thread;

use crate::server::free_address;
use crate::slurm_server::SlurmServer;
use crate::{error_of, stdout_of, value};

const JACOBI: &str = "jacobi --rows 37 --cols 23 --block 8 --steps 9 --check --quiet";

/// Adds the variables that a task of a step has, whatever the kind of MPI.
fn with_step(command: &mut Command, rank: usize, size: usize) {
    for (name, value) in [
        ("SLURM_JOB_ID", "4711"),
        ("SLURM_JOBID", "4711"),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_JOB_NODELIST", "node1"),
        ("SLURM_NODELIST", "node1"),
        ("SLURM_STEP_NODELIST", "node1"),
        ("SLURM_NNODES", "1"),
        ("SLURM_NODEID", "0"),
        ("SLURM_LAUNCH_NODE_IPADDR", "127.0.0.1"),
    ] {
        command.env(name, value);
    }
    for (name, value) in [
        ("SLURM_PROCID", rank),
        ("SLURM_LOCALID", rank),
        ("SLURM_NTASKS", size),
        ("SLURM_NPROCS", size),
        ("SLURM_STEP_NUM_TASKS", size),
    ] {
        command.env(name, value.to_string());
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
}

/// Checks that the processes are one run, whose result the first one prints.
fn check(children: Vec<Child>, transport: &str) {
    let outputs: Vec<Output> =
        children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    let text = stdout_of(&outputs[0]);
    assert_eq!((value(&text, "ranks"), value(&text, "transport")), ("3", transport));
    assert!(value(&text, "verified").starts_with("yes"), "{text}");
    assert!(outputs[1..].iter().all(|output| stdout_of(output).is_empty()));
}

#[test]
fn processes_of_srun_with_pmi2_are_serial() {
    for version in [1, 2] {
        for (options, transport) in [("", "shm"), ("--transport tcp", "tcp")] {
            let server = Arc::new(SlurmServer::new(version, 3, "4711.0"));
            let start = |rank: usize| {
                let (here, there) = UnixStream::pair().unwrap();
                let server = Arc::clone(&server);
                let arguments = format!("{JACOBI} {options}");
                let mut command = crate::command(&arguments.split_whitespace().collect::<Vec<_>>());
                with_step(&mut command, rank, 3);
                command.env("PMI_FD", "0").env("PMI_JOBID", "4711.0");
                command.env("PMI_RANK", rank.to_string()).env("PMI_SIZE", "3");
                let child = command.stdin(OwnedFd::from(there)).spawn().unwrap();
                (child, thread::spawn(move || server.serve(here, rank)))
            };
            let (children, served): (Vec<_>, Vec<_>) = (0..3).map(start).unzip();
            check(children, transport);
            for commands in served.into_iter().map(|served| served.join().unwrap()) {
                assert_eq!(commands.last().map(String::as_str), Some("finalize"));
                assert!(!commands.contains(&"no command".to_owned()), "{commands:?}");
            }
        }
    }
}

/// The command of the guide.
#[test]
fn processes_of_srun_without_pmi_meet_at_a_server() {
    let server = free_address();
    let line = format!(
        "exec {} {JACOBI} --server {server} --process $SLURM_PROCID --processes $SLURM_NTASKS",
        env!("CARGO_BIN_EXE_talpf")
    );
    let start = |rank: usize| {
        let mut command = Command::new("sh");
        command.args(["-c", &line]).stdin(Stdio::null()).env("TALPF_SECRET", "of the step");
        with_step(&mut command, rank, 3);
        command.spawn().unwrap()
    };
    check((0..3).map(start).collect(), "shm");
}

#[test]
fn tasks_of_srun_without_pmi_do_not_each_run_everything() {
    let output_of = |tasks| {
        let mut command = crate::command(&JACOBI.split_whitespace().collect::<Vec<_>>());
        with_step(&mut command, 0, tasks);
        command.output().unwrap()
    };
    let error = error_of(&output_of(3));
    assert!(error.starts_with("srun has started 3 tasks (SLURM_STEP_NUM_TASKS)"), "{error}");
    assert!(value(&stdout_of(&output_of(1)), "verified").starts_with("yes"));
}
