//! Log of the runtime on the error stream, if it is asked for.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::{command, error_of, stdout_of, talpf};

const RUN: &str = "jacobi --size 32 --block 8 --steps 3 --quiet";

/// Runs with arguments and a variable, and returns the error stream.
fn said(arguments: &str, variable: &str) -> String {
    let mut command = command(&arguments.split(' ').collect::<Vec<_>>());
    let output = command.env("TALPF_LOG", variable).output().unwrap();
    assert!(output.status.success() && !output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn start_and_end_of_the_runtime_are_said() {
    for said in [said(&format!("{RUN} --log info"), ""), said(RUN, "talpf::runtime=info")] {
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines.len() >= 2, "{said}");
        assert!(said.contains("talpf::runtime") && said.contains("runtime begins"), "{said}");
        assert!(lines[lines.len() - 1].contains("runtime has ended"), "{said}");
    }
    assert_eq!(said(&format!("--log warn {RUN}"), "info"), "");
}

#[test]
fn nothing_is_said_unasked() {
    stdout_of(&talpf(RUN));
    assert_eq!(said(RUN, ""), "");
}

#[test]
fn a_filter_that_is_none_is_an_error() {
    let error = error_of(&talpf(&format!("{RUN} --log a=b=c")));
    assert!(error.starts_with("--log is `a=b=c`: "), "{error}");
}

#[test]
fn a_variable_that_is_no_text_is_an_error() {
    let variable = OsStr::from_bytes(b"talpf::runtime\xff=info");
    let mut command = command(&RUN.split(' ').collect::<Vec<_>>());
    let error = error_of(&command.env("TALPF_LOG", variable).output().unwrap());
    assert!(error.starts_with("TALPF_LOG is `talpf::runtime\u{fffd}=info`: "), "{error}");
}
