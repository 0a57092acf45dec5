//! The Perfetto form has a slice for each slice of a task and each state, and a flow for each message.

use std::fs;

use talpf_traces::{Conversion, convert};
use tempfile::TempDir;

use crate::run::{LABEL, counts, trace};

/// Content of a field of protobuf.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn number(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

/// Returns the fields of a message with their numbers.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = number(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(number(&mut bytes)),
            kind => {
                let length = if kind == 1 { 8 } else { number(&mut bytes) as usize };
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(content)
            }
        };
        fields.push((key >> 3, field));
    }
    fields
}

/// Numbers of slices that begin and end, and of flows that do.
fn found(bytes: &[u8]) -> [usize; 4] {
    let mut found = [0; 4];
    for (_, packet) in fields(bytes) {
        let Field::Bytes(packet) = packet else { panic!("a number among packets") };
        for (field, content) in fields(packet) {
            let (11, Field::Bytes(event)) = (field, content) else { continue };
            for (field, content) in fields(event) {
                match (field, content) {
                    (9, Field::Number(kind @ 1..=2)) => found[kind as usize - 1] += 1,
                    (47, Field::Bytes(_)) => found[2] += 1,
                    (48, Field::Bytes(_)) => found[3] += 1,
                    _ => {}
                }
            }
        }
    }
    found
}

#[test]
fn slices_and_flows_are_those_of_the_trace() {
    let (folder, prv) = trace();
    let out = folder.path().join("run.pftrace");
    convert(&prv, Conversion::Perfetto, &out).unwrap();
    let counts = counts(&prv);
    let slices = counts.tasks + counts.states;
    let bytes = fs::read(&out).unwrap();
    assert_eq!(found(&bytes), [slices, slices, counts.messages, counts.messages]);
    for name in [LABEL, "inner", "Running", "Requests outstanding", "r1 w1"] {
        let times = bytes.windows(name.len()).filter(|part| *part == name.as_bytes()).count();
        assert!(times >= 1, "{name}");
    }
}

#[test]
fn names_beyond_the_table_are_kept() {
    let folder = TempDir::new().unwrap();
    let [prv, out] = ["run.prv", "out"].map(|name| folder.path().join(name));
    // Task types without labels: each has its number for a name.
    let mut text = String::from("#Paraver (21/11/2026 at 02:40):200000_ns:0:1:1(1:0)\n");
    for time in 1..70_000 {
        text += &format!("2:0:1:1:1:{time}:11:{}\n", time + 100_000);
    }
    fs::write(&prv, text).unwrap();
    convert(&prv, Conversion::Perfetto, &out).unwrap();
    let bytes = fs::read(&out).unwrap();
    assert_eq!(found(&bytes)[..2], [69_999, 69_999]);
    for name in [b"100001", b"169999"] {
        assert_eq!(bytes.windows(6).filter(|part| part == name).count(), 1);
    }
}
