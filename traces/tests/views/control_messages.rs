//! Control messages are lines of their own kind, and change nothing of what else a trace says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use talpf_traces::paraver::{self, Communication, Reader, Record};
use talpf_traces::{
    Change, Conversion, Diff, Event, Format, MessageKind, Recorder, RenderOptions, Summary, View,
    WaitNs, convert, convert_to_csv, convert_to_ovni, render,
};
use tempfile::TempDir;

use crate::support::{ended, info};

const KINDS: [MessageKind; 4] = [
    MessageKind::Count,
    MessageKind::ExchangeStep,
    MessageKind::BarrierStep,
    MessageKind::Acknowledgement,
];

/// Writes the trace of two ranks on two workers, 1,000 ns: a put of rank 0 lets a task of rank 1 run. With
/// control messages rank 1 gets one of each kind in that time, before and after the put has arrived, and sends
/// one.
fn trace(has_control: bool) -> (TempDir, PathBuf) {
    let recorder = Recorder::default();
    let [put, sync, read] = ["put", "sync", "read"].map(|name| recorder.label(name));
    let slice = |rank, task, label, began_ns| Event::TaskSlice {
        starts: true,
        rank,
        task,
        label,
        began_ns,
    };
    let waited = WaitNs::between(0, 5);
    let send = |kind, rank, message, bytes| Event::Send {
        kind,
        rank,
        peer: 1 - rank,
        message,
        bytes,
        waited,
    };
    let control = |time: u64, message: u64| (time, KINDS[message as usize], message);
    let mut first = recorder.stream(0);
    let mut second = recorder.stream(1);
    second.record(12, slice(1, 2, sync, 2));
    first.record(25, send(MessageKind::Put, 0, 1, 8));
    if has_control {
        for (time_ns, kind, message) in [control(26, 0), control(27, 1)] {
            first.record(time_ns, send(kind, 0, message, 0));
            let (rank, peer, lane, round) = (1, 0, 2, 3);
            let receive = Event::ReceiveControl { kind, rank, peer, message, lane, round };
            second.record(time_ns + 5, receive);
        }
    }
    first.record(30, slice(0, 1, put, 5));
    second.record(50, Event::Receive { rank: 1, peer: 0, message: 1, lane: 0, round: 0 });
    second.record(52, ended(1, 0, 0));
    if has_control {
        // Complete after the put and before the edge.
        for (time_ns, kind, message) in [control(53, 2), control(54, 3)] {
            first.record(time_ns, send(kind, 0, message, 0));
            let (rank, peer, lane, round) = (1, 0, 0, 0);
            let receive = Event::ReceiveControl { kind, rank, peer, message, lane, round };
            second.record(time_ns + 5, receive);
        }
        second.record(60, send(MessageKind::Acknowledgement, 1, 0, 0));
    }
    second.record(70, Event::Ready { rank: 1, task: 3, by: 2 });
    second.record(90, slice(1, 3, read, 75));
    if has_control {
        let (kind, rank, peer, message) = (MessageKind::Acknowledgement, 0, 1, 0);
        first.record(95, Event::ReceiveControl { kind, rank, peer, message, lane: 0, round: 0 });
    }
    drop((first, second));
    let folder = TempDir::new().unwrap();
    // Workers are there all the time, whatever they record.
    let files = recorder.write_paraver(folder.path(), "run", &info(2, 2, 1_000)).unwrap();
    (folder, files.prv)
}

fn messages(prv: &Path) -> Vec<Communication> {
    let mut messages = Vec::new();
    let collect = |record: Record<'_>| {
        if let Record::Communication(message) = record {
            messages.push(message);
        }
    };
    Reader::open(prv).unwrap().read(collect).unwrap();
    messages
}

#[test]
fn tags_and_labels_name_the_kind() {
    let (_folder, prv) = trace(true);
    let report = paraver::check(&prv).unwrap();
    assert!(report.is_clean(), "{report}");
    let counts = report.counts();
    assert_eq!((counts.communications, counts.control), (6, 5));
    assert!(report.to_string().contains("6 communications with 5 control messages)"), "{report}");

    let messages = messages(&prv);
    let control: Vec<_> = messages.iter().filter(|message| message.control().is_some()).collect();
    let kinds: Vec<_> = control.iter().filter_map(|message| message.control()).collect();
    assert_eq!(kinds, [KINDS[0], KINDS[1], KINDS[2], KINDS[3], MessageKind::Acknowledgement]);
    let tag = |message: &Communication| message.tag - (1 << 52);
    assert_eq!(tag(control[0]), 7 << 48 | 3);
    assert_eq!(tag(control[3]), 10 << 48);
    for message in control {
        assert_eq!((message.bytes, message.logical_receive_ns), (0, message.receive_ns));
        assert_eq!(message.send_ns - message.logical_send_ns, 5);
    }
    let text = std::fs::read_to_string(&prv).unwrap();
    for (at, kind) in [(31, 7), (32, 8), (58, 9), (59, 10)] {
        let lane = if at < 50 { 3 } else { 1 };
        let event = format!(":{at}:95000013:{kind}:95000014:{lane}\n");
        assert!(text.contains(&event), "{event}{text}");
    }
}

#[test]
fn without_them_nothing_names_them() {
    let (_folder, prv) = trace(false);
    let report = paraver::check(&prv).unwrap().to_string();
    assert!(!report.contains("control"), "{report}");
    let labels = std::fs::read_to_string(prv.with_extension("pcf")).unwrap();
    assert!(labels.contains("\n6    message\n"), "{labels}");
    assert!(KINDS.iter().all(|kind| !labels.contains(kind.name())), "{labels}");
    let text = Summary::of(&prv).unwrap().to_string();
    assert!(!text.contains("control"), "{text}");
}

#[test]
fn summary_and_difference_have_the_data_alone() {
    let [(_with, with), (_without, without)] = [true, false].map(trace);
    let mut summary = Summary::of(&with).unwrap();
    let text = summary.to_string();
    let line = "\n5 control messages (acknowledgement 2, count 1, step of a barrier 1, \
                step of an exchange 1)\n";
    assert!(text.contains(line), "{text}");
    let control = std::mem::take(&mut summary.messages.control);
    let expected = [("count", 1), ("step of an exchange", 1), ("step of a barrier", 1)];
    let expected = expected.into_iter().chain([("acknowledgement", 2)]);
    let expected: BTreeMap<String, u64> =
        expected.map(|(name, count)| (name.to_owned(), count)).collect();
    assert_eq!(control, expected);
    let alone = Summary::of(&without).unwrap();
    assert_eq!(alone.messages.bytes, 8);
    assert!(alone.critical_path.as_ref().is_some_and(|path| path.messages.count == 1));
    // The rows of the workers last until their last records.
    summary.ranks.clone_from(&alone.ranks);
    summary.states.clone_from(&alone.states);
    assert_eq!(summary, alone);
    let diff = Diff::of(&with, &without).unwrap();
    let same = |changes: &BTreeMap<String, Change>| changes.values().all(|c| c.first == c.second);
    assert!(same(&diff.tasks) && same(&diff.syncs), "{diff}");
}

fn svg(prv: &Path, view: &str) -> String {
    let view: View = view.parse().unwrap();
    let options = RenderOptions { view, ..RenderOptions::default() };
    let mut bytes = Vec::new();
    render(prv, &options).unwrap().write(Format::Svg, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn views_of_data_show_the_same() {
    let [(_with, with), (_without, without)] = [true, false].map(trace);
    for view in [
        "bandwidth",
        "bytes-in-flight",
        "bytes-matrix",
        "call-to-end-of-sync",
        "messages-in-flight",
        "messages-matrix",
        "put-latency",
        "window-wait",
    ] {
        assert_eq!(svg(&with, view), svg(&without, view), "{view}");
    }
    let lines = |prv: &Path, view: &str| svg(prv, view).matches("<line").count();
    assert_eq!(lines(&with, "states"), lines(&without, "states"));
    assert_eq!(lines(&with, "control-messages"), lines(&without, "control-messages") + 5);
    for count in [">4</text>", ">1</text>"] {
        assert!(svg(&with, "control-messages-matrix").contains(count), "{count}");
    }
    let nothing = "the trace has none of these values in this time";
    assert!(svg(&without, "control-messages-matrix").contains(nothing));
}

#[test]
fn flows_have_names_of_their_own() {
    let (folder, prv) = trace(true);
    let json = folder.path().join("run.json");
    convert(&prv, Conversion::Chrome, &json).unwrap();
    let json = std::fs::read_to_string(json).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let mut names: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for event in json["traceEvents"].as_array().unwrap().iter().filter(|of| of["ph"] == "s") {
        let [kind, name] = ["cat", "name"].map(|field| event[field].as_str().unwrap());
        *names.entry((kind, name)).or_default() += 1;
    }
    let of = |name| (("control", name), 1);
    let mut expected = BTreeMap::from(KINDS.map(|kind| of(kind.name())));
    expected.insert(("control", "acknowledgement"), 2);
    expected.insert(("message", "message"), 1);
    assert_eq!(names, expected);

    let protobuf = folder.path().join("run.pftrace");
    convert(&prv, Conversion::Perfetto, &protobuf).unwrap();
    let bytes = std::fs::read(protobuf).unwrap();
    for name in ["control messages", "step of a barrier", "send", "receive"] {
        assert!(bytes.windows(name.len()).any(|part| part == name.as_bytes()), "{name}");
    }
}

#[test]
fn a_table_has_a_column_for_the_kind() {
    let [(folder, with), (_without, without)] = [true, false].map(trace);
    let kinds = |prv: &Path| {
        let [_, _, messages] = convert_to_csv(prv, folder.path()).unwrap();
        let table = std::fs::read_to_string(messages).unwrap();
        let kinds = table.lines().map(|line| line.rsplit(',').next().unwrap().replace('"', ""));
        let mut kinds: Vec<String> = kinds.collect();
        kinds.sort_unstable();
        kinds
    };
    assert_eq!(kinds(&without), ["data", "kind"]);
    let mut expected: Vec<_> = KINDS.iter().map(|kind| kind.name()).collect();
    expected.extend(["acknowledgement", "data", "kind"]);
    expected.sort_unstable();
    assert_eq!(kinds(&with), expected);
}

#[test]
fn streams_of_ovni_leave_them_out_by_a_number_of_their_own() {
    let left_out = |is_control| {
        let (folder, prv) = trace(is_control);
        let written = convert_to_ovni(&prv, folder.path().join("ovni")).unwrap();
        (written.messages_left_out, written.control_messages_left_out)
    };
    assert_eq!(left_out(true), (1, 5));
    assert_eq!(left_out(false), (1, 0));
}
