//! Files that cannot be read or written are found before the run, and nothing is lost.

use std::fs;
use std::path::Path;

use tempfile::tempdir;

use crate::{error_of, talpf_with};

/// Arguments of a run so long that a test which does not fail before it is noticed.
const LONG: [&str; 5] = ["jacobi", "--size", "512", "--steps", "1000000000"];
/// Files of its trace.
const TRACE: [&str; 3] = ["jacobi.prv", "jacobi.pcf", "jacobi.row"];

fn error_with(option: &str, path: &Path) -> String {
    let mut arguments = LONG.to_vec();
    arguments.extend([option, path.to_str().unwrap()]);
    error_of(&talpf_with(&arguments))
}

#[test]
fn output_in_a_folder_that_does_not_exist() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("missing/file");
    for option in ["--json", "--image"] {
        let error = error_with(option, &path);
        assert!(error.starts_with(&format!("cannot write {}: ", path.display())), "{error}");
    }
}

#[test]
fn output_that_is_a_folder() {
    let folder = tempdir().unwrap();
    for option in ["--json", "--image"] {
        assert!(error_with(option, folder.path()).starts_with("cannot write "));
    }
}

#[test]
fn trace_folder_that_cannot_be_made_or_written_to() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "kept").unwrap();
    for path in [&file, &file.join("below"), Path::new("/proc/talpf")] {
        let error = error_with("--trace", path);
        let expected = format!("cannot write {}: ", path.display());
        assert!(error.starts_with(&expected), "{error}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    for name in TRACE {
        let taken = folder.path().join("taken by").join(name);
        let place = taken.join(name);
        fs::create_dir_all(&place).unwrap();
        let error = error_with("--trace", &taken);
        assert!(error.starts_with(&format!("cannot write {}: ", place.display())), "{error}");
    }
}

#[test]
fn failed_run_leaves_no_trace_folder() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("trace");
    let trace = path.to_str().unwrap();
    let arguments = ["jacobi", "--size", "3", "--ranks", "4", "--trace", trace];
    error_of(&talpf_with(&arguments));
    assert!(!path.exists());
}

#[test]
fn one_file_for_trace_and_result() {
    let folder = tempdir().unwrap();
    for name in TRACE {
        let (trace, json) = (folder.path(), folder.path().join(name));
        let (trace, json) = (trace.to_str().unwrap(), json.to_str().unwrap());
        let mut arguments = LONG.to_vec();
        arguments.extend(["--trace", trace, "--json", json]);
        let error = error_of(&talpf_with(&arguments));
        assert_eq!(error, format!("{json} is given for two outputs"));
    }
}

#[test]
fn one_file_for_two_outputs() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("both");
    let path = path.to_str().unwrap();
    let mut arguments = LONG.to_vec();
    arguments.extend(["--json", path, "--image", path]);
    assert_eq!(error_of(&talpf_with(&arguments)), format!("{path} is given for two outputs"));
    assert!(!Path::new(path).exists());
}

#[test]
fn failed_run_leaves_old_output_and_makes_no_new_one() {
    let folder = tempdir().unwrap();
    let (old, new) = (folder.path().join("old.json"), folder.path().join("new.png"));
    fs::write(&old, "kept").unwrap();
    let (json, image) = (old.to_str().unwrap(), new.to_str().unwrap());
    let arguments = ["jacobi", "--size", "3", "--ranks", "4", "--json", json, "--image", image];
    error_of(&talpf_with(&arguments));
    assert_eq!(fs::read_to_string(&old).unwrap(), "kept");
    assert!(!new.exists());
}

#[cfg(target_os = "linux")]
#[test]
fn full_device_is_an_error() {
    let output = talpf_with(&["jacobi", "--size", "3", "--steps", "1", "--json", "/dev/full"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: cannot write /dev/full: "));
}

#[test]
fn config_that_cannot_be_read() {
    let folder = tempdir().unwrap();
    let missing = folder.path().join("missing.conf");
    assert!(error_with("--config", &missing).starts_with("cannot read "));
    assert!(error_with("--config", folder.path()).starts_with("cannot read "));
    let binary = folder.path().join("binary.conf");
    fs::write(&binary, [0xff, 0xfe, 0x00]).unwrap();
    assert!(error_with("--config", &binary).starts_with("cannot read "));
    let long = folder.path().join("long.conf");
    fs::write(&long, "#".repeat((1 << 20) + 1)).unwrap();
    assert!(error_with("--config", &long).ends_with("longer than 1048576 bytes"));
}

#[test]
fn config_with_a_bad_field_names_line_field_value_and_limit() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("heat.conf");
    for (text, place, expected) in [
        (
            "",
            1,
            "number of heat sources is missing at the end of the file, expected a whole number",
        ),
        ("0\n", 1, "number of heat sources is \"0\", expected a whole number from 1 to 1024"),
        ("1\n2 0 1 1\n", 2, "row is \"2\", expected a number from 0 to 1"),
        ("1\n0 x 1 1\n", 2, "column is \"x\", expected a number from 0 to 1"),
        ("1\n0 0 0 1\n", 2, "size is \"0\", expected a number above 0, at most 10"),
        ("1\n0 0 1 inf\n", 2, "temperature is \"inf\", expected a number from -1000000 to"),
        ("1\n0 0 1\n", 2, "heat source is \"0 0 1\", expected row, column, size and temp"),
        ("1\n0 0 1 1\n\n9\n", 4, "line is \"9\", expected the end after source 1"),
    ] {
        fs::write(&path, text).unwrap();
        let error = error_with("--config", &path);
        let expected = format!("{}:{place}: {expected}", path.display());
        assert!(error.starts_with(&expected), "{error}");
    }
}
