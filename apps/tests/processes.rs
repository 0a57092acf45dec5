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

/// Checks that exactly one rank, each of which is a process, reports a result equal to the serial one.
#[track_caller]
fn is_verified(ranks: usize, arguments: &str) {
    is_verified_in(ranks, ranks, arguments);
}

/// Checks that exactly one of `ranks` in `processes` reports a result equal to the serial one.
#[track_caller]
fn is_verified_in(processes: usize, ranks: usize, arguments: &str) {
    let output = mpirun(processes, &format!("{arguments} --check --quiet"));
    let run = format!("{processes} x {arguments}");
    assert!(output.status.success(), "{run}: {}", launcher::said(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("verified")).collect();
    assert!(matches!(&lines[..], [line] if line.contains("yes")), "{run}: {text}");
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
        (
            3,
            "gauss-seidel --rows 37 --cols 23 --block 8 --single-blocks --steps 5 --variant talpf-lanes",
        ),
        (3, "gauss-seidel --rows 37 --cols 23 --block 8 --single-blocks --steps 5 --variant tampi"),
        (
            3,
            "gauss-seidel --rows 37 --cols 23 --block 8 --single-blocks --steps 5 --variant talpf-lanes --replay",
        ),
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

/// All kinds of syncs, puts, gets, atomics, notifications and queues, within processes and between them.
#[test]
fn two_ranks_in_each_process_are_serial() {
    let jacobi = "jacobi --rows 37 --cols 23 --block 8 --steps 9";
    let gauss_seidel = "gauss-seidel --rows 37 --cols 23 --block 8 --single-blocks --steps 5";
    for (run, variants) in [
        (jacobi, &["lpf", "talpf-default", "talpf-cached", "talpf-cached-barrier"][..]),
        (jacobi, &["talpf-cached-ack", "talpf-raw-cached", "talpf-msg", "talpf-get"]),
        (gauss_seidel, &["talpf-lanes", "talpf-notify"]),
        ("nbody --particles 101 --block 10 --steps 2", &["talpf-cached"]),
        ("matmul --size 61 --block 8 --iterations 2", &["talpf-get"]),
        ("matmul-g --size 29 --block 8 --iterations 2", &["talpf-get"]),
        ("histogram --numbers 5000 --bins 64 --block 64 --steps 3", &["talpf-default"]),
        ("kmeans --points 500 --block 32 --steps 4", &["talpf-cached", "talpf-notify"]),
        ("mandelbrot --size 40 --limit 100 --block 4 --steps 2", &["talpf-queue"]),
    ] {
        for variant in variants {
            let run = format!("{run} --variant {variant} --transport mpi --ranks-per-process 2");
            is_verified_in(2, 4, &run);
        }
    }
}

#[test]
fn any_number_of_ranks_is_divided_among_the_processes() {
    let jacobi = "jacobi --rows 37 --cols 23 --block 8 --steps 9 --transport mpi";
    for (processes, ranks, options) in [
        (1, 3, "--ranks-per-process 3"),
        (2, 6, "--ranks 6 --workers-per-rank 1 --tolerance 0.001"),
        (2, 6, "--ranks-per-process 3 --replay"),
        (3, 6, "--ranks 6 --variant talpf-get --workers 1"),
        (3, 3, "--ranks-per-process 1 --variant tampi"),
    ] {
        is_verified_in(processes, ranks, &format!("{jacobi} {options}"));
    }
}

#[test]
fn processes_with_other_settings_are_an_error_that_names_them() {
    for (first, second, expected) in [
        ("--ranks-per-process 1", "--ranks-per-process 2", ["ranks 2", "ranks 4"]),
        // Each finds a mistake of its own, but not before the others know.
        ("--ranks 4", "--ranks 3", ["ranks 4", "ranks 3"]),
        ("--size 40", "--size 41", ["rows 40", "rows 41"]),
    ] {
        let talpf = env!("CARGO_BIN_EXE_talpf");
        let jacobi = "jacobi --block 8 --steps 9 --quiet --transport mpi";
        let line = format!("{jacobi} {first} : -n 1 {talpf} {jacobi} {second}");
        let output = mpirun(1, &line);
        assert!(!output.status.success(), "{line}");
        let errors = String::from_utf8_lossy(&output.stderr);
        let [here, there] = expected;
        let says = |process: u32, one: &str, other: u32, its: &str| {
            errors.contains(&format!("process {process} has {one}, process {other} has {its}"))
        };
        let is_named = says(1, there, 0, here) || says(0, here, 1, there);
        assert!(is_named, "{line}: {errors}");
    }
}

#[test]
fn a_process_that_ends_before_its_run_is_named_by_the_others() {
    let run = "jacobi --size 64 --steps 5 --transport mpi";
    let output = mpirun(2, &format!("{run} --json /no/folder/run.json"));
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("cannot write /no/folder/run.json"), "{errors}");
    assert!(errors.contains("error: process 0 has left before all had come"), "{errors}");
}

#[test]
fn metrics_are_those_of_all_ranks_of_all_processes() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("run.json");
    let run = "jacobi --size 64 --block 16 --steps 5 --quiet --transport mpi --workers 2";
    let output = mpirun(2, &format!("{run} --ranks-per-process 2 --json {}", json.display()));
    assert!(output.status.success(), "{}", launcher::said(&output));
    let json: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!(json["ranks"], 4, "{json}");
    // Once each worker of both processes, though two ranks share them.
    assert_eq!(json["metrics"]["idle_s"].as_array().map(Vec::len), Some(4), "{json}");
}

/// Returns the messages of a trace that has no error, by sender and receiver.
fn messages_of(prv: &Path) -> Vec<(u32, u32, u64, u64)> {
    let report = talpf_traces::paraver::check(prv).unwrap();
    assert!(report.is_clean(), "{report}");
    let pairs = talpf_traces::Summary::of(prv).unwrap().messages.pairs;
    pairs.iter().map(|of| (of.from, of.to, of.messages, of.bytes)).collect()
}

/// Returns the labels of the ranks of a trace, in their order.
fn rows_of(prv: &Path) -> Vec<String> {
    let row = fs::read_to_string(prv.with_extension("row")).unwrap();
    let (_, ranks) = row.split_once("LEVEL TASK").expect("labels of ranks");
    let lines = ranks.lines().skip(1).take_while(|line| !line.trim().is_empty());
    lines.map(str::to_owned).collect()
}

#[test]
fn traces_of_processes_are_joined() {
    for (processes, ranks, app, run) in [
        (2, 2, "jacobi", "jacobi --size 64 --block 16 --steps 5 --variant talpf-cached"),
        (2, 4, "jacobi", "jacobi --size 64 --block 16 --steps 5 --variant talpf-cached"),
        (2, 2, "jacobi", "jacobi --size 64 --block 16 --steps 5 --variant tampi-blocking"),
        (
            4,
            4,
            "gauss-seidel",
            "gauss-seidel --size 64 --block 16 --single-blocks --steps 5 --variant tampi",
        ),
        (
            3,
            6,
            "gauss-seidel",
            "gauss-seidel --size 96 --block 16 --single-blocks --steps 5 --variant talpf-lanes",
        ),
        (4, 4, "matmul", "matmul --size 61 --block 8 --iterations 2 --variant tampi"),
        (2, 4, "matmul", "matmul --size 61 --block 8 --iterations 2 --variant talpf-get"),
    ] {
        let (one, several) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let trace = |folder: &Path| format!("{run} --quiet --trace {}", folder.display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_talpf"));
        let line = format!("{} --ranks {ranks}", trace(one.path()));
        let output = command.args(line.split(' ')).output().unwrap();
        assert!(output.status.success(), "{run}: {}", launcher::said(&output));
        let line = format!("{} --transport mpi --ranks {ranks}", trace(several.path()));
        let output = mpirun(processes, &line);
        assert!(output.status.success(), "{run}: {}", launcher::said(&output));

        let prv = several.path().join(format!("{app}.prv"));
        let text = fs::read_to_string(&prv).unwrap();
        assert!(text.contains("clocks of all processes corrected"), "{run}: {text}");
        assert_eq!(rows_of(&prv), rows_of(&one.path().join(format!("{app}.prv"))), "{run}");
        let expected = messages_of(&one.path().join(format!("{app}.prv")));
        assert!(!expected.is_empty(), "{run}");
        assert_eq!(messages_of(&prv), expected, "{run}");
    }
}

#[test]
fn mpi_joins_processes_only_where_it_is_asked_for() {
    for (option, transport, ranks) in [
        ("--transport mpi", None, "2"),
        ("", Some("shm"), "2"),
        ("--ranks-per-process 2", Some("shm"), "4"),
        ("--fabric tcp", Some("tcp"), "2"),
    ] {
        let jacobi = format!("jacobi --rows 37 --cols 23 --block 8 --steps 9 --quiet {option}");
        let output = mpirun(2, jacobi.trim());
        let text = String::from_utf8_lossy(&output.stdout);
        let said = |name| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        assert!(output.status.success(), "{}", launcher::said(&output));
        assert_eq!(said("transport "), transport, "{}", launcher::said(&output));
        assert_eq!(said("ranks "), Some(ranks), "{}", launcher::said(&output));
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
fn ranks_per_process_are_refused_in_one_that_no_launcher_has_started() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_talpf"));
    let output = command.args(["jacobi", "--ranks-per-process", "2"]).output().unwrap();
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("--ranks-per-process is for processes that"), "{errors}");
}

#[test]
fn what_a_run_of_processes_cannot_do_is_an_error() {
    for (arguments, expected) in [
        ("jacobi --variant serial --transport mpi", "variant serial has no ranks"),
        (
            "jacobi --ranks 3 --transport mpi",
            "ranks is 3, expected a multiple of 2, the number of processes",
        ),
        ("jacobi --ranks-per-process 0 --transport mpi", "expected a whole number from 1 to 4096"),
        ("jacobi --ranks-per-process 4097 --transport mpi", "from 1 to 4096"),
        (
            "jacobi --ranks-per-process 2049 --transport mpi",
            "processes times ranks per process is 4098, expected 1 to 4096",
        ),
        ("jacobi --ranks 4 --ranks-per-process 2 --transport mpi", "cannot be used with"),
        ("jacobi --ranks-per-process 2 --transport verbs", "mpirun has started 2 processes"),
        (
            "jacobi --ranks-per-process 2 --variant tampi --transport mpi",
            "variant tampi over --transport mpi has one rank in each process, but --ranks or \
             --ranks-per-process make 4 in 2: start 4 processes, or choose a variant talpf-*",
        ),
        ("jacobi --size 3 --ranks 4 --transport mpi", "ranks is 4, expected at most 3"),
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
