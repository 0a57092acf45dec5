use std::fs;
use std::path::Path;

use tempfile::tempdir;

use crate::{error_of, stdout_of, talpf, talpf_with, value};

const VARIANTS: [&str; 11] = [
    "serial",
    "fork-join",
    "talpf-default",
    "talpf-cached",
    "talpf-cached-barrier",
    "talpf-cached-ack",
    "talpf-raw-cached",
    "talpf-msg",
    "talpf-get",
    "tampi",
    "tampi-blocking",
];

fn run(variant: &str, folder: &Path) -> String {
    let folder = folder.to_str().unwrap();
    let small = "jacobi --rows 37 --cols 23 --block 8 --steps 9 --ranks 3 --variant";
    let mut arguments: Vec<&str> = small.split(' ').collect();
    arguments.extend([variant, "--trace", folder]);
    stdout_of(&talpf_with(&arguments))
}

fn check(path: &Path) -> std::process::Output {
    talpf_with(&["trace", "check", path.to_str().unwrap()])
}

#[test]
fn trace_of_every_variant_is_clean() {
    let folder = tempdir().unwrap();
    for variant in VARIANTS {
        let folder = folder.path().join("new").join(variant);
        let text = run(variant, &folder);
        let prv = folder.join("jacobi.prv");
        let shown = value(&text, "trace");
        assert!(shown.starts_with(prv.to_str().unwrap()), "{shown}");
        assert!(shown.ends_with(" 0 dropped)"), "{shown}");

        let summary = stdout_of(&check(&prv));
        assert!(summary.starts_with("0 errors, 0 warnings; "), "{summary}");
        assert_eq!(summary.lines().count(), 1);
        let comments = fs::read_to_string(&prv).unwrap();
        assert!(comments.contains(&format!("# jacobi {variant}\n")));
        assert!(comments.contains("# rows 37, cols 23, block 8, steps 9\n"));
        let ranks = if ["serial", "fork-join"].contains(&variant) { "1 rank" } else { "3 ranks" };
        assert!(comments.contains(&format!("# {ranks}, ")));
    }
}

#[test]
fn second_trace_replaces_the_first() {
    let folder = tempdir().unwrap();
    run("talpf-get", folder.path());
    run("serial", folder.path());
    let prv = fs::read_to_string(folder.path().join("jacobi.prv")).unwrap();
    assert!(prv.contains("# jacobi serial\n"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn broken_trace_is_reported_line_by_line_and_fails() {
    let folder = tempdir().unwrap();
    run("talpf-msg", folder.path());
    let prv = folder.path().join("jacobi.prv");
    let text = fs::read_to_string(&prv).unwrap();
    fs::write(&prv, text + "9:1:1:1:1:0\n").unwrap();

    let output = check(&prv);
    assert!(!output.status.success());
    let found = String::from_utf8(output.stdout).unwrap();
    let finding = found.lines().next().unwrap();
    assert!(finding.starts_with(prv.to_str().unwrap()), "{finding}");
    assert!(finding.contains(": error: "), "{finding}");
    let last = found.lines().last().unwrap();
    assert!(last.starts_with("1 error, 0 warnings; "), "{last}");
    let error = String::from_utf8(output.stderr).unwrap();
    let expected = format!("error: {} has 1 error and 0 warnings\n", prv.display());
    assert_eq!(error, expected);
}

#[test]
fn file_that_is_no_trace_is_an_error() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("heat.prv");
    for content in [&b""[..], b"\x89PNG\r\n", b"2\n0 0 1 2.5\n", &[0; 5000]] {
        fs::write(&path, content).unwrap();
        let error = error_of(&check(&path));
        let expected = format!("{} is not a Paraver trace: ", path.display());
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn trace_that_cannot_be_read_is_an_error() {
    let folder = tempdir().unwrap();
    for path in [folder.path().join("missing.prv"), folder.path().to_owned()] {
        let error = error_of(&check(&path));
        let expected = format!("cannot read the trace {}: ", path.display());
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn trace_needs_a_command_and_check_a_file() {
    assert!(error_of(&talpf("trace")).contains("subcommand"));
    assert!(error_of(&talpf("trace chek x.prv")).contains("'chek'"));
    assert!(error_of(&talpf("trace check")).contains("<FILE.prv>"));
    assert!(error_of(&talpf("trace check a.prv b.prv")).contains("'b.prv'"));
}
