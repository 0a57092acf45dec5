//! The Chrome form is JSON, with a begin and an end for each slice and two ends for each message.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use talpf_traces::{Conversion, Recorder, convert};
use tempfile::TempDir;

use crate::run::{LABEL, counts, trace};
use crate::support::{ended, info};

#[test]
fn every_record_is_an_event() {
    let (folder, prv) = trace();
    let out = folder.path().join("run.json");
    convert(&prv, Conversion::Chrome, &out).unwrap();
    let json: Value = serde_json::from_str(&fs::read_to_string(&out).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for event in events {
        *kinds.entry(event["ph"].as_str().unwrap()).or_default() += 1;
    }
    let counts = counts(&prv);
    assert_eq!((counts.tasks, counts.messages), (4, 3));
    let of = |kind| kinds.get(kind).copied().unwrap_or_default();
    assert_eq!([of("B"), of("E")], [counts.tasks; 2]);
    assert_eq!(of("X"), counts.states);
    assert_eq!([of("s"), of("f")], [counts.messages; 2]);

    let first = events.iter().find(|event| event["ph"] == "B").unwrap();
    assert_eq!((first["name"].as_str().unwrap(), first["ts"].as_f64().unwrap()), (LABEL, 0.0));
    let is_requests =
        |event: &&Value| event["ph"] == "C" && event["name"] == "Requests outstanding";
    let requests = events.iter().find(is_requests).unwrap();
    assert_eq!((&requests["args"]["value"], &requests["ts"]), (&3.into(), &0.53.into()));
    let names = events.iter().filter(|event| event["name"] == "process_name");
    let names: Vec<_> = names.map(|event| event["args"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["rank 0", "rank 1"]);
    assert_eq!(json["otherData"]["lost"], Value::Array(Vec::new()));
}

#[test]
fn what_is_lost_is_said() {
    let recorder = Recorder::new(1);
    let mut worker = recorder.stream(0);
    (710..720).for_each(|time| worker.record(time, ended(0, 0, time)));
    drop(worker);
    let folder = tempfile::TempDir::new().unwrap();
    let files = recorder.write_paraver(folder.path(), "run", &info(1, 1, 1_000)).unwrap();
    let out = folder.path().join("run.json");
    convert(files.prv, Conversion::Chrome, &out).unwrap();
    let json: Value = serde_json::from_str(&fs::read_to_string(&out).unwrap()).unwrap();
    let lost = json["otherData"]["lost"][0].as_str().unwrap();
    assert!(lost.contains("records dropped"), "{lost}");
}

#[test]
fn tasks_that_begin_at_one_time_are_all_shown() {
    let folder = TempDir::new().unwrap();
    let [prv, out] = ["run.prv", "run.json"].map(|name| folder.path().join(name));
    let lines = "#Paraver (1/1/2026 at 00:00):9_ns:0:1:1(1:0)\n\
        2:0:1:1:1:0:10:1:11:1:10:2:11:2\n2:0:1:1:1:5:10:1:11:1\n2:0:1:1:1:9:10:0:11:0\n";
    fs::write(&prv, lines).unwrap();
    convert(&prv, Conversion::Chrome, &out).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&fs::read(out).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let begun = events.iter().filter(|event| event["ph"] == "B");
    let begun: Vec<_> =
        begun.map(|event| (&event["name"], event["ts"].as_f64().unwrap())).collect();
    assert_eq!(begun, [(&"1".into(), 0.0), (&"2".into(), 0.0), (&"1".into(), 0.005)]);
}
