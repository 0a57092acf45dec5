//! Programs in C, compiled by `lpfcc` and run by `lpfrun`: a case for each function of the interface, and for each
//! mistake of a program.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use libtest_mimic::{Arguments, Failed, Trial};

/// Numbers of processes that each case runs with.
const PROCESSES: [u32; 3] = [1, 2, 5];

/// Status of a program that has made a mistake.
const MISUSE: i32 = 6;

fn main() {
    let arguments = Arguments::from_args();
    let built = compile("cases", &["tests/c"]);
    let ring = compile("ring", &["examples/ring.c"]);
    let names = run(&built, 1, &[]);
    let names = String::from_utf8(names.stdout).expect("names of cases");
    assert!(names.lines().count() > 80, "cases are missing: {names}");
    let mut trials = Vec::new();
    for name in names.lines().map(str::to_owned) {
        let program = built.clone();
        trials.push(Trial::test(name.clone(), move || check(&program, &name)));
    }
    trials.push(Trial::test("the_example_runs", move || {
        let output = run(&ring, 4, &[]);
        let expected = "4 processes: the sum is 6\n";
        let is_right = output.status.success() && output.stdout == expected.as_bytes();
        is_right.then_some(()).ok_or_else(|| failure(&output, 4))
    }));
    libtest_mimic::run(&arguments, trials).exit();
}

/// Returns a file of this crate.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Compiles C files, or those in a folder, with warnings as errors.
fn compile(name: &str, sources: &[&str]) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let library = std::env::current_exe().expect("the path of this test");
    let mut command = Command::new(file("bin/lpfcc"));
    command.env("LPF_LIBRARY", library.parent().expect("the folder of its libraries"));
    command.args(["-g", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program);
    for source in sources.iter().map(|path| file(path)) {
        match source.is_dir() {
            true => {
                let entries = source.read_dir().expect("a folder of sources");
                let paths = entries.map(|entry| entry.expect("a file").path());
                command.args(paths.filter(|path| path.extension().is_some_and(|e| e == "c")));
            }
            false => _ = command.arg(source),
        }
    }
    let output = command.output().expect("lpfcc runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn run(program: &Path, processes: u32, arguments: &[&str]) -> Output {
    let mut command = Command::new(file("bin/lpfrun"));
    command.args(["-n", &processes.to_string()]).arg(program).args(arguments);
    // These cases test the errors that programs get without checks.
    let is_unchecked = arguments.iter().any(|name| name.starts_with("unchecked"));
    command.env("LPF_CHECK", if is_unchecked { "off" } else { "on" });
    // Cargo's path may lead to a library of an earlier build.
    command.env_remove("LD_LIBRARY_PATH");
    command.output().expect("lpfrun runs")
}

/// Runs a case with each number of processes, and checks its status, and the line of one that is a mistake.
fn check(program: &Path, name: &str) -> Result<(), Failed> {
    let is_misuse = name.starts_with("misuse");
    for processes in PROCESSES {
        // Some mistakes are none of a single process.
        if is_misuse && processes == 1 {
            continue;
        }
        let output = run(program, processes, &[name]);
        let lines = output.stderr.iter().filter(|byte| **byte == b'\n').count();
        let is_right = match is_misuse {
            true => {
                let is_named = output.stderr.starts_with(b"lpf: process ");
                output.status.code() == Some(MISUSE) && lines == 1 && is_named
            }
            false => output.status.success() && lines == 0,
        };
        if !is_right {
            return Err(failure(&output, processes));
        }
    }
    Ok(())
}

/// Describes how a program has failed.
fn failure(output: &Output, processes: u32) -> Failed {
    let [printed, errors] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    let status = output.status;
    Failed::from(format!("{processes} processes: {status}\n{printed}{errors}"))
}
