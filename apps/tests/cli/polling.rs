//! `TALPF_POLLING_FREQUENCY` affects the variants with tasks and `info`, and nothing else.

use std::ffi::OsStr;
use std::process::Output;

use crate::{command, error_of, stdout_of, value};

const RUN: [&str; 9] =
    ["jacobi", "--size", "20", "--steps", "9", "--block", "4", "--check", "--variant"];

fn polling(frequency: impl AsRef<OsStr>, arguments: &[&str]) -> Output {
    let mut command = command(arguments);
    command.env("TALPF_POLLING_FREQUENCY", frequency);
    command.output().unwrap()
}

fn run(frequency: &str, variant: &str) -> Output {
    polling(frequency, &[&RUN[..], &[variant]].concat())
}

#[test]
fn every_unit_works() {
    for frequency in ["0", "100ns", "20us", "1ms", " 50 "] {
        let text = stdout_of(&run(frequency, "talpf-default"));
        assert!(value(&text, "verified").starts_with("yes"), "{frequency}");
    }
}

#[test]
fn garbage_is_an_error_that_names_it() {
    for frequency in ["", "fast", "-1", "1.5", "10s", "3600001ms"] {
        let error = error_of(&run(frequency, "talpf-cached"));
        let expected = format!("TALPF_POLLING_FREQUENCY={frequency}: give a whole number");
        assert!(error.starts_with(&expected), "{error}");
        error_of(&polling(frequency, &["info"]));
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_text_is_an_error_that_names_it() {
    use std::os::unix::ffi::OsStrExt;
    let error = error_of(&polling(OsStr::from_bytes(b"5\xffus"), &["info"]));
    let expected = "TALPF_POLLING_FREQUENCY=5\u{fffd}us: give a whole number";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn variants_without_tasks_do_not_read_it() {
    for variant in ["serial", "fork-join"] {
        stdout_of(&run("fast", variant));
    }
}

#[test]
fn info_shows_it() {
    let text = stdout_of(&polling("7", &["info"]));
    assert_eq!(value(&text, "polling"), "every 7µs");
}
