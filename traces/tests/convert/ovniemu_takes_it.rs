//! ovni's own emulator takes the streams, with its linter.

use std::env;
use std::process::Command;

use talpf_traces::convert_to_ovni;

use crate::run::trace;

#[test]
#[ignore = "needs TALPF_OVNIEMU, the program ovniemu of ovni 1.11 or later"]
fn emulation_of_the_streams_finishes() {
    let emulator = env::var_os("TALPF_OVNIEMU").expect("TALPF_OVNIEMU");
    let (folder, prv) = trace();
    let out = folder.path().join("ovni");
    convert_to_ovni(&prv, &out).unwrap();
    let output = Command::new(emulator).arg("-l").arg(&out).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
