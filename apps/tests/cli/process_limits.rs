//! Runs of processes whose limits are low.

use std::process::{Command, Output, Stdio};

use crate::{error_of, stdout_of, value};

const RUN: &str = "launch -n 4 -- jacobi --size 64 --block 16 --steps 3 --quiet";

/// Runs with a limit, which is an option of `ulimit` and its value.
fn limited(limit: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {limit} && exec \"$@\""), "sh"]);
    command.arg(env!("CARGO_BIN_EXE_talpf")).args(RUN.split(' '));
    command.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn too_few_files_are_an_error_that_names_the_limit() {
    let error = error_of(&limited("-n 12"));
    assert!(error.starts_with("cannot run process "), "{error}");
    assert!(error.ends_with("; limits of this process: 12 open files (ulimit -n)"), "{error}");
}

#[test]
fn little_address_space_is_shared() {
    let text = stdout_of(&limited("-v 4000000"));
    assert_eq!(value(&text, "transport"), "shm");
}
