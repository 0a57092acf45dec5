//! Pieces of one run become one trace; others are refused.

use std::fs;
use std::path::PathBuf;

use talpf_traces::paraver::{check, merge};
use tempfile::TempDir;

use crate::support::sample::sample;

const HEADER: &str = "#Paraver (21/11/2026 at 02:40):100_ns:2(2,2):1:2(1:1,1:2)\n";

/// Returns the labels of the sample with those of two more states.
fn labels() -> String {
    let labels = sample().pcf.unwrap();
    let labels = labels.replace("1 Running\n", "1 Running\n2 Not created\n15 Not recorded\n");
    labels.replace("1 {0,0,255}\n", "1 {0,0,255}\n2 {255,255,255}\n15 {120,120,120}\n")
}

fn merged(texts: &[&str]) -> Result<String, String> {
    let folder = TempDir::new().unwrap();
    let pieces: Vec<PathBuf> =
        (0..texts.len()).map(|n| folder.path().join(format!("{n}.prv"))).collect();
    for (path, text) in pieces.iter().zip(texts) {
        fs::write(path, text).unwrap();
        fs::write(path.with_extension("pcf"), labels()).unwrap();
    }
    let files =
        merge(&pieces, folder.path().join("whole.prv")).map_err(|error| error.to_string())?;
    let report = check(&files.prv).unwrap();
    assert!(report.is_clean(), "{report}");
    Ok(fs::read_to_string(files.prv).unwrap())
}

#[test]
fn rows_of_two_processes() {
    let first = "# first\n1:1:1:1:1:0:100:1\n2:1:1:1:1:0:11:1\n1:3:1:2:1:0:100:2\n";
    let second = "# second\n1:1:1:1:1:0:100:2\n1:3:1:2:1:0:100:1\n2:3:1:2:1:50:11:1\n";
    let text = merged(&[&format!("{HEADER}{first}"), &format!("{HEADER}{second}")]).unwrap();
    let expected = "\
        # first\n# second\n1:1:1:1:1:0:100:1\n2:1:1:1:1:0:11:1\n1:3:1:2:1:0:100:1\n2:3:1:2:1:50:11:1\n";
    assert_eq!(text.split_once('\n').unwrap().1, expected);
}

#[test]
fn time_between_two_pieces_is_not_recorded() {
    let piece =
        |begins: u64| format!("{HEADER}# begins at {begins} ns of the run\n1:1:1:1:1:0:100:1\n");
    let text = merged(&[&piece(300), &piece(100)]).unwrap();
    assert!(text.contains("# begins at 100 ns of the run\n"), "{text}");
    let states: Vec<&str> = text.lines().filter(|line| line.starts_with("1:")).collect();
    assert_eq!(states, ["1:1:1:1:1:0:100:1", "1:1:1:1:1:100:200:15", "1:1:1:1:1:200:300:1"]);
}

#[test]
fn one_row_in_two_traces_at_one_time_is_an_error() {
    let text = format!("{HEADER}1:1:1:1:1:0:100:1\n");
    let error = merged(&[&text, &text]).unwrap_err();
    assert!(error.contains("0.prv shows row 1.1.1 until 100 ns, and "), "{error}");
    assert!(error.contains("1.prv from 0 ns"), "{error}");
}

#[test]
fn traces_of_other_objects_are_refused() {
    let text = format!("{HEADER}1:1:1:1:1:0:100:1\n");
    let error =
        merged(&[&text, &text.replace("2(2,2):1:2(1:1,1:2)", "2(2,2):1:1(1:1)")]).unwrap_err();
    assert!(error.contains("1.prv has the objects `2(2,2):1:1(1:1)`, "), "{error}");
    assert!(error.ends_with("0.prv `2(2,2):1:2(1:1,1:2)`"), "{error}");
}

#[test]
fn a_damaged_piece_is_named() {
    let text = format!("{HEADER}1:1:1:1:1:0:100:1\n");
    let error = merged(&[&text, &format!("{text}1:1:1:9:1:0:100:1\n")]).unwrap_err();
    assert!(error.contains("1.prv:3: task 9"), "{error}");
}

#[test]
fn no_trace_is_an_error() {
    let folder = TempDir::new().unwrap();
    let none: [PathBuf; 0] = [];
    let error = merge(&none, folder.path().join("whole.prv")).unwrap_err().to_string();
    assert_eq!(error, "there is no trace to be merged");
}
