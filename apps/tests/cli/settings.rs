//! Settings of the runtime: from options, from the environment, from a file.

use std::fs;
use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

use crate::{command, error_of, stdout_of, talpf, value};

const RUN: &str = "jacobi --size 20 --steps 9 --block 4 --check --quiet";

/// Creates a folder with a `talpf.toml` of this text.
fn folder(text: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("talpf.toml"), text).unwrap();
    folder
}

fn talpf_in(folder: &Path, environment: &[(&str, &str)], arguments: &str) -> Output {
    let mut command = command(&arguments.split_whitespace().collect::<Vec<_>>());
    command.current_dir(folder).envs(environment.iter().copied()).output().unwrap()
}

#[test]
fn info_shows_what_is_set() {
    let folder = folder(
        "workers = 3\nidle = 'park'\nthrottle = 'off'\npolling = '20us'\n\
                        check_conflicts = false\n",
    );
    let text = stdout_of(&talpf_in(folder.path(), &[], "info --runtime-config talpf.toml"));
    assert_eq!(value(&text, "workers"), "3");
    assert_eq!(value(&text, "idle"), "park");
    assert_eq!(value(&text, "throttle"), "off");
    assert_eq!(value(&text, "polling"), "every 20µs");
    assert_eq!(value(&text, "conflicts"), "not checked");
}

#[test]
fn environment_goes_before_the_file() {
    let folder = folder("idle = 'park'\npolling = '20us'\ncheck_conflicts = false\n");
    let environment = [
        ("TALPF_CONFIG", "talpf.toml"),
        ("TALPF_IDLE", "adaptive:7"),
        ("TALPF_POLLING_FREQUENCY", "3us"),
        ("TALPF_CHECK_CONFLICTS", "true"),
    ];
    let text = stdout_of(&talpf_in(folder.path(), &environment, "info"));
    assert_eq!(value(&text, "idle"), "adaptive (spin 7 us)");
    assert_eq!(value(&text, "polling"), "every 3µs");
    assert_eq!(value(&text, "conflicts"), "checked");
}

#[test]
fn a_variable_that_names_no_file_is_refused_by_its_name() {
    let folder = folder("");
    let output = talpf_in(folder.path(), &[("TALPF_CONFIG", "")], "info");
    let error = error_of(&output);
    assert!(error.contains("TALPF_CONFIG"), "{error}");
}

#[test]
fn options_go_before_the_file() {
    let folder = folder("workers = 3\n");
    let file = [("TALPF_CONFIG", "talpf.toml")];
    let text = stdout_of(&talpf_in(folder.path(), &file, RUN));
    assert_eq!(value(&text, "workers"), "3");
    let text = stdout_of(&talpf_in(folder.path(), &file, &format!("{RUN} --workers 2")));
    assert_eq!(value(&text, "workers"), "2");
}

#[test]
fn every_policy_runs() {
    for policy in ["spin", "adaptive", "adaptive:0", "park"] {
        let text = stdout_of(&talpf_in(Path::new("."), &[("TALPF_IDLE", policy)], RUN));
        assert!(value(&text, "verified").starts_with("yes"), "{policy}");
    }
}

#[test]
fn a_bad_line_is_an_error_that_names_it() {
    let folder = folder("workers = 2\nidle = 'fast'\n");
    let run = format!("{RUN} --runtime-config talpf.toml");
    let error = error_of(&talpf_in(folder.path(), &[], &run));
    assert!(error.starts_with("talpf.toml:2: idle = \"fast\": give `spin`"), "{error}");
    let error = error_of(&talpf("jacobi --runtime-config no/talpf.toml"));
    assert!(error.starts_with("cannot read no/talpf.toml: "), "{error}");
}

#[test]
fn a_bad_variable_is_an_error_that_names_it() {
    let run = |variant: &str, set: (&str, &str)| {
        talpf_in(Path::new("."), &[set], &format!("{RUN} --variant {variant}"))
    };
    let (idle, conflicts) = (("TALPF_IDLE", "fast"), ("TALPF_CHECK_CONFLICTS", "on"));
    for variant in ["talpf-cached", "tampi"] {
        assert!(error_of(&run(variant, idle)).starts_with("TALPF_IDLE=fast: give `spin`"));
    }
    let error = error_of(&run("talpf-cached", conflicts));
    assert_eq!(error, "TALPF_CHECK_CONFLICTS=on: give `true` or `false`");
    for set in [idle, conflicts] {
        stdout_of(&run("fork-join", set));
    }
}
