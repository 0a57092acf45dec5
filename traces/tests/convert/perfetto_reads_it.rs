//! Perfetto's own description of its format reads the file.

use std::env;
use std::process::Command;

use talpf_traces::{Conversion, convert};

use crate::run::{counts, trace};

#[test]
#[ignore = "needs TALPF_PERFETTO_PYTHON, a Python with the packages perfetto and protobuf"]
fn parsed_slices_and_flows_are_those_of_the_trace() {
    let python = env::var_os("TALPF_PERFETTO_PYTHON").expect("TALPF_PERFETTO_PYTHON");
    let (folder, prv) = trace();
    let out = folder.path().join("run.pftrace");
    convert(&prv, Conversion::Perfetto, &out).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/convert/count_in_perfetto.py");
    let output = Command::new(python).arg(script).arg(&out).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let counts = counts(&prv);
    let expected = format!("{} slices, {} flows\n", counts.tasks + counts.states, counts.messages);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}
