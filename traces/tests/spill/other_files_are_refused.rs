//! Files that no recorder has written are errors.

use std::fs;

use talpf_traces::{Error, recover};

use crate::run::{Folder, record};

#[test]
fn another_version_is_named() {
    let folder = Folder::new();
    record(&folder.recorder(1000), 1);
    let mut bytes = fs::read(folder.spill()).unwrap();
    bytes[8] = 1;
    fs::write(folder.spill(), bytes).unwrap();
    let error = recover(&folder.spill(), folder.path(), "run").unwrap_err();
    assert!(matches!(error, Error::SpillVersion { version: 1, expected: 2, .. }), "{error}");
    assert!(error.to_string().ends_with("run.spill has version 1 of its format, expected 2"));
}

#[test]
fn other_files_and_missing_ones_are_refused() {
    let folder = Folder::new();
    let recovered = || recover(&folder.spill(), folder.path(), "run").unwrap_err();
    assert!(matches!(recovered(), Error::Io { .. }));
    for bytes in [&b""[..], b"TALPF", b"TALPFSPL\x02\0\0", b"#Paraver (26/11/2026 at 12:00)"] {
        fs::write(folder.spill(), bytes).unwrap();
        assert!(matches!(recovered(), Error::NotSpill { .. }), "{bytes:?}");
    }
}

#[test]
fn a_file_that_cannot_be_made_is_an_error() {
    let folder = Folder::new();
    fs::create_dir(folder.spill()).unwrap();
    let limits = talpf_traces::Limits {
        records: 10,
        keep: talpf_traces::Keep::First,
        extent: talpf_traces::Extent::Whole,
        edges: false,
        control: false,
    };
    let info = talpf_traces::TraceInfo::default();
    let error = talpf_traces::Recorder::spilling(limits, &folder.spill(), &info).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
}
