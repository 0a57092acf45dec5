//! No input makes the linter panic or miss that a trace is damaged beyond
//! reading.

use crate::support::sample::sample;
use proptest::prelude::*;
use talpf_traces::paraver::check;

fn check_bytes(prv: &[u8], pcf: &[u8], row: &[u8]) {
    let dir = tempfile::tempdir().expect("temporary directory");
    for (extension, bytes) in [("prv", prv), ("pcf", pcf), ("row", row)] {
        std::fs::write(dir.path().join("run").with_extension(extension), bytes).expect("file");
    }
    let report = check(dir.path().join("run.prv")).expect("readable");
    let _ = report.to_string();
}

/// Overwrites, removes or repeats bytes of `text`.
fn damage(text: &str, cuts: &[(usize, u8, u8)]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for &(place, action, byte) in cuts {
        let place = place % bytes.len().max(1);
        match action % 3 {
            0 if !bytes.is_empty() => bytes[place] = byte,
            1 if !bytes.is_empty() => drop(bytes.remove(place)),
            _ => bytes.insert(place, byte),
        }
    }
    bytes
}

proptest! {
    #[test]
    fn noise_is_reported(
        prv in prop::collection::vec(any::<u8>(), 0..200),
        pcf in prop::collection::vec(any::<u8>(), 0..200),
        row in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        check_bytes(&prv, &pcf, &row);
    }

    #[test]
    fn damaged_traces_are_read_to_the_end(
        cuts in prop::collection::vec(
            (any::<usize>(), any::<u8>(), prop::sample::select(&b":,()0149-. \n\r_#c"[..])),
            1..12,
        ),
    ) {
        let trace = sample();
        let (pcf, row) = (trace.pcf.expect("pcf"), trace.row.expect("row"));
        check_bytes(&damage(&trace.prv, &cuts), &damage(&pcf, &cuts), &damage(&row, &cuts));
    }
}
