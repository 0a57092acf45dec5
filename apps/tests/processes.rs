//! Applications with ranks in several processes, under `mpirun`: their results equal the serial
//! ones.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

#[path = "../../tampi-shim/tests/ranked/launcher.rs"]
mod launcher;

fn mpirun(ranks: usize, arguments: &str) -> Output {
    launcher::run(ranks, env!("CARGO_BIN_EXE_talpf"), |command| command.args(arguments.split(' ')))
        .expect("mpirun and timeout are installed")
}

/// Checks that exactly one rank reports a result equal to the serial one.
#[track_caller]
fn is_verified(ranks: usize, arguments: &str) {
    let output = mpirun(ranks, &format!("{arguments} --check --quiet"));
    assert!(output.status.success(), "{ranks} x {arguments}: {}", launcher::said(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("verified")).collect();
    assert!(matches!(&lines[..], [line] if line.contains("yes")), "{ranks} x {arguments}: {text}");
    let said = text.lines().find_map(|line| line.strip_prefix("ranks"));
    assert_eq!(said.map(str::trim), Some(&*ranks.to_string()), "{text}");
}

#[test]
fn jacobi_is_serial() {
    for variant in ["talpf-default", "talpf-cached", "talpf-msg", "tampi", "tampi-blocking"] {
        for ranks in [1, 3] {
            is_verified(
                ranks,
                &format!(
                    "jacobi --rows 37 --cols 23 --block 8 --steps 9 --variant {variant} \
                     --transport mpi"
                ),
            );
        }
    }
}

#[test]
fn the_other_applications_and_replayed_ones_are_serial() {
    for (ranks, run) in [
        (3, "gauss-seidel --rows 37 --cols 23 --block 8 --steps 5 --variant talpf-lanes"),
        (3, "gauss-seidel --rows 37 --cols 23 --block 8 --steps 5 --variant tampi"),
        (3, "gauss-seidel --rows 37 --cols 23 --block 8 --steps 5 --variant talpf-lanes --replay"),
        (3, "jacobi --rows 37 --cols 23 --block 8 --steps 9 --variant talpf-msg --replay"),
        (2, "nbody --particles 101 --block 10 --steps 2 --variant tampi --replay"),
        (2, "nbody --particles 101 --block 10 --steps 2 --variant talpf-cached"),
        (2, "nbody --particles 101 --block 10 --steps 2 --variant tampi"),
        (2, "matmul --size 61 --block 8 --iterations 2 --variant talpf-get"),
        (2, "matmul --size 61 --block 8 --iterations 2 --variant tampi-blocking"),
        (4, "matmul-g --size 29 --block 8 --iterations 2 --variant talpf-get"),
        (4, "matmul-g --size 29 --block 8 --iterations 2 --variant tampi"),
    ] {
        is_verified(ranks, &format!("{run} --transport mpi"));
    }
}

#[test]
fn four_ranks_run_as_the_readme_says() {
    let small = "jacobi --size 64 --block 16 --steps 5";
    is_verified(4, &format!("{small} --variant tampi --transport mpi"));
    is_verified(4, &format!("{small} --variant talpf-cached --fabric mpi"));
}

/// Returns the messages of a trace that has no error, by sender and receiver.
fn messages_of(prv: &Path) -> Vec<(u32, u32, u64, u64)> {
    let report = talpf_traces::paraver::check(prv).unwrap();
    assert!(report.is_clean(), "{report}");
    let pairs = talpf_traces::Summary::of(prv).unwrap().messages.pairs;
    pairs.iter().map(|of| (of.from, of.to, of.messages, of.bytes)).collect()
}

#[test]
fn traces_of_processes_are_joined() {
    for (ranks, app, run) in [
        (2, "jacobi", "jacobi --size 64 --block 16 --steps 5 --variant talpf-cached"),
        (2, "jacobi", "jacobi --size 64 --block 16 --steps 5 --variant tampi-blocking"),
        (4, "gauss-seidel", "gauss-seidel --size 64 --block 16 --steps 5 --variant tampi"),
        (4, "matmul", "matmul --size 61 --block 8 --iterations 2 --variant tampi"),
    ] {
        let (one, several) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let trace = |folder: &Path| format!("{run} --quiet --trace {}", folder.display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_talpf"));
        let line = format!("{} --ranks {ranks}", trace(one.path()));
        let output = command.args(line.split(' ')).output().unwrap();
        assert!(output.status.success(), "{run}: {}", launcher::said(&output));
        let output = mpirun(ranks, &format!("{} --transport mpi", trace(several.path())));
        assert!(output.status.success(), "{run}: {}", launcher::said(&output));

        let prv = several.path().join(format!("{app}.prv"));
        let text = fs::read_to_string(&prv).unwrap();
        assert!(text.contains("clocks of all processes corrected"), "{run}: {text}");
        let expected = messages_of(&one.path().join(format!("{app}.prv")));
        assert!(!expected.is_empty(), "{run}");
        assert_eq!(messages_of(&prv), expected, "{run}");
    }
}

#[test]
fn mpi_joins_processes_only_where_it_is_asked_for() {
    let connected_by_us =
        [("--transport mpi", None), ("", Some("shm")), ("--fabric tcp", Some("tcp"))];
    for (option, transport) in connected_by_us {
        let jacobi = format!("jacobi --rows 37 --cols 23 --block 8 --steps 9 --quiet {option}");
        let output = mpirun(2, jacobi.trim());
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find_map(|line| line.strip_prefix("transport "));
        assert!(output.status.success(), "{}", launcher::said(&output));
        assert_eq!(line.map(str::trim), transport, "{}", launcher::said(&output));
    }
}

/// Without a launcher, MPI finds one process.
#[test]
fn processes_that_another_mpi_has_started_do_not_all_run_the_job() {
    let run = |started: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_talpf"));
        command.args("jacobi --size 64 --block 16 --steps 5 --transport mpi".split(' '));
        command.env("MV2_COMM_WORLD_SIZE", started).output().expect("the command exists")
    };
    let output = run("1");
    assert!(output.status.success(), "{}", launcher::said(&output));
    let output = run("4");
    assert!(!output.status.success(), "{}", launcher::said(&output));
    let errors = String::from_utf8_lossy(&output.stderr);
    let expected = "mpirun has started 4 processes, but the MPI of this program finds one";
    assert!(errors.contains(expected), "{errors}");
}

#[test]
fn what_a_run_of_processes_cannot_do_is_an_error() {
    for (arguments, expected) in [
        ("jacobi --variant serial --transport mpi", "variant serial has no ranks"),
        ("jacobi --ranks 3 --transport mpi", "ranks is 3, expected 2 to 2"),
        ("jacobi --graph /tmp --transport mpi", "--graph is not supported with --transport mpi"),
        ("jacobi --size 1 --transport mpi", "ranks is 2, expected at most 1"),
        ("jacobi --variant tampi", "mpirun has started 2 processes"),
        ("compare jacobi --out /nowhere", "mpirun has started 2 processes"),
        ("compare jacobi --out /nowhere --transport mpi", "compare runs all ranks in one process"),
    ] {
        let output = mpirun(2, arguments);
        assert!(!output.status.success(), "{arguments}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(expected), "{arguments}: {errors}");
    }
}
