//! `--trace-control`: control messages of syncs in the trace of a run.

use std::fs;
use std::path::Path;

use tempfile::{TempDir, tempdir};

use crate::{error_of, stdout_of, talpf_with};

/// Runs jacobi with default syncs and a trace. Returns the folder and the text of the trace.
fn run_with(options: &[&str]) -> (TempDir, String) {
    let folder = tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let run = "jacobi --size 64 --block 16 --steps 30 --ranks 2 --workers 2 --variant talpf-default --trace";
    let arguments: Vec<&str> =
        run.split(' ').chain([path]).chain(options.iter().copied()).collect();
    stdout_of(&talpf_with(&arguments));
    let trace = fs::read_to_string(folder.path().join("jacobi.prv")).unwrap();
    (folder, trace)
}

#[test]
fn control_messages_are_counted_apart() {
    const DATA: usize = 60;
    let (plain, text) = run_with(&[]);
    let (folder, with) = run_with(&["--trace-control"]);
    let messages = |text: &str| text.lines().filter(|line| line.starts_with("3:")).count();
    let labels = |folder: &Path| fs::read_to_string(folder.join("jacobi.pcf")).unwrap();
    assert_eq!(messages(&text), DATA);
    assert!(!labels(plain.path()).contains("acknowledgement"));
    assert!(labels(folder.path()).contains("\n10   acknowledgement\n"));
    let prv = folder.path().join("jacobi.prv");
    let checked = stdout_of(&talpf_with(&["trace", "check", prv.to_str().unwrap()]));
    assert!(checked.starts_with("0 errors, 0 warnings; "), "{checked}");
    let summary = |arguments: &[&str]| {
        let command = ["trace", "summary", prv.to_str().unwrap()];
        stdout_of(&talpf_with(&[&command, arguments].concat()))
    };
    let json: serde_json::Value = serde_json::from_str(&summary(&["--json"])).unwrap();
    let all = &json["messages"];
    assert_eq!(all["kinds"], serde_json::json!({ "put": DATA }));
    let control: u64 =
        all["control"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    // Each rank sends one to the other in each exchange, and in each barrier.
    let syncs = json["ranks"][0]["rounds"].as_u64().unwrap();
    assert_eq!(control, 4 * syncs, "{all}");
    assert_eq!(messages(&with), DATA + control as usize);
    let counted = format!("{} communications with {control} control messages", messages(&with));
    assert!(checked.contains(&counted), "{checked}");
    assert!(summary(&[]).contains(&format!("\n{control} control messages (")));
    let streams = folder.path().join("ovni");
    let [prv, streams] = [&prv, &streams].map(|path| path.to_str().unwrap());
    let convert = ["trace", "convert", prv, "--to", "ovni", "-o", streams];
    let text = stdout_of(&talpf_with(&convert));
    let left_out = format!("\n{DATA} messages with data, {control} control messages and ");
    assert!(text.contains(&left_out), "{text}");
}

#[test]
fn variants_without_syncs_have_no_control_messages() {
    for variant in ["tampi", "tampi-blocking", "serial", "fork-join"] {
        let run = ["jacobi", "--trace", "t", "--trace-control", "--variant", variant];
        let error = error_of(&talpf_with(&run));
        assert!(
            error.contains(&format!("--trace-control is not supported with {variant}")),
            "{error}"
        );
    }
    assert!(error_of(&talpf_with(&["jacobi", "--trace-control"])).contains("--trace"));
}
