//! Streams of ovni obey the rules of its emulator, and have the tasks, times and levels of the trace.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use talpf_traces::{Error, Event, Recorder, State, Summary, convert_to_ovni, paraver::Reader};
use tempfile::TempDir;

use crate::ovni_reader::{Emulated, emulate};
use crate::run::{LABEL, trace};
use crate::support::{info, state};

const PCF: &str =
    "EVENT_TYPE\n0    10    Task id\n\nEVENT_TYPE\n0    11    Task type\nVALUES\n1    a\n2    b\n";

/// Converts a trace, and emulates the streams in two orders of those with equal clocks.
fn streams(prv: &Path) -> Emulated {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("ovni");
    let written = convert_to_ovni(prv, &out).unwrap();
    let found = emulate(&out, |_| {});
    let other = emulate(&out, |streams: &mut Vec<PathBuf>| streams.reverse());
    assert_eq!(found.type_ns, other.type_ns);
    assert_eq!((written.streams, written.tasks), (found.streams, found.tasks as u64));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

    let summary = Summary::of(prv).unwrap();
    let of_summary = summary.tasks.iter().map(|(name, task)| (name.clone(), task.slices.total_ns));
    assert_eq!(
        found.type_ns.clone().into_iter().collect::<Vec<_>>(),
        of_summary.collect::<Vec<_>>()
    );
    let states = found.mark_ns.iter().filter(|((title, _), _)| title == "State");
    for ((_, label), ns) in states {
        let of_ranks = summary.ranks.iter().map(|rank| rank.states_ns.get(label).unwrap_or(&0));
        assert_eq!(of_ranks.sum::<u64>(), *ns, "{label}");
    }
    found
}

/// Writes a trace of one rank with `rows` rows from lines of events, `row:time:type:value...`.
fn of_lines(rows: usize, lines: &[&str]) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let prv = folder.path().join("run.prv");
    let mut text = format!("#Paraver (1/1/2026 at 00:00):100_ns:0:1:1({rows}:0)\n");
    for line in lines {
        let (row, rest) = line.split_once(':').unwrap();
        text += &format!("2:0:1:1:{row}:{rest}\n");
    }
    fs::write(&prv, text + "2:0:1:1:1:100:9:1\n").unwrap();
    fs::write(folder.path().join("run.pcf"), PCF).unwrap();
    (folder, prv)
}

#[test]
fn tasks_states_and_what_is_left_out() {
    let (folder, prv) = trace();
    let found = streams(&prv);
    assert_eq!(found.streams, 4);
    assert_eq!(found.tasks, 3);
    assert_eq!((found.executed, found.resumed), (3, 1));
    assert_eq!(found.type_ns[LABEL], 400 + 300);
    assert_eq!(found.type_ns["inner"], 100);
    assert_eq!(found.resting_ns, 160);
    assert_eq!(found.looms.len(), 1);
    let idle = &found.mark_ns[&("State".to_owned(), "Idle".to_owned())];
    assert_eq!(*idle, 160);
    assert!(found.mark_ns.keys().any(|(title, _)| title == "Requests outstanding"));
    assert!(found.mark_ns.keys().any(|(title, label)| title == "Sync mode" && label != "0"));

    let mut values = 0;
    let mut reader = Reader::open(&prv).unwrap();
    reader
        .read(|record| {
            if let talpf_traces::paraver::Record::Event { values: of_event, .. } = record {
                let moments = [95_000_005..=95_000_009, 95_000_012..=95_000_021];
                let is_moment = |kind: &u32| moments.iter().any(|kinds| kinds.contains(kind));
                values += of_event.iter().filter(|(kind, _)| is_moment(kind)).count();
            }
        })
        .unwrap();
    let written = convert_to_ovni(&prv, folder.path().join("again")).unwrap();
    assert_eq!((written.messages_left_out, written.values_left_out), (3, values as u64));
    assert_eq!(written.control_messages_left_out, 0);
    assert!(values > 0 && written.lost.is_empty());
}

#[test]
fn a_task_that_others_interrupt_is_paused() {
    let (_folder, prv) = of_lines(
        1,
        &["1:0:10:1:11:1", "1:10:10:2:11:2", "1:20:10:3:11:2", "1:30:10:1:11:1", "1:40:10:0:11:0"],
    );
    let found = streams(&prv);
    assert_eq!((found.tasks, found.executed, found.resumed), (3, 3, 1));
    assert_eq!((found.type_ns["a"], found.type_ns["b"]), (20, 20));
}

#[test]
fn a_task_that_goes_on_in_another_row_has_bodies() {
    let (_folder, prv) = of_lines(
        2,
        &["1:0:10:1:11:1", "2:10:10:1:11:1", "1:10:10:0:11:0", "2:20:10:0:11:0", "1:30:10:1:11:1"],
    );
    let found = streams(&prv);
    assert_eq!((found.tasks, found.executed, found.resumed), (1, 3, 0));
    assert_eq!(found.type_ns["a"], 10 + 10 + 70);
}

#[test]
fn a_task_that_waits_past_another_has_bodies() {
    // Task 1 goes on after task 2 has interrupted it and before that comes back.
    let (_folder, prv) = of_lines(
        1,
        &["1:0:10:1:11:1", "1:10:10:2:11:2", "1:20:10:1:11:1", "1:30:10:2:11:2", "1:40:10:0:11:0"],
    );
    let found = streams(&prv);
    assert_eq!((found.tasks, found.executed, found.resumed), (2, 3, 1));
    assert_eq!((found.type_ns["a"], found.type_ns["b"]), (20, 20));
}

#[test]
fn values_in_lines_of_their_own_are_one_change() {
    let (_folder, prv) =
        of_lines(1, &["1:0:10:1", "1:0:11:1", "1:10:10:2", "1:10:11:2", "1:20:10:0", "1:20:11:0"]);
    let found = streams(&prv);
    assert_eq!((found.tasks, found.executed), (2, 2));
    assert_eq!((found.type_ns["a"], found.type_ns["b"]), (10, 10));
}

#[test]
fn a_task_comes_back_past_as_many_others_as_are_known() {
    const MOST: usize = 1 << 16;
    for (others, resumed) in [(MOST, 1), (MOST + 1, 0)] {
        let others: Vec<_> = (2..others + 2).map(|task| format!("1:1:10:{task}:11:2")).collect();
        let mut lines = vec!["1:0:10:1:11:1"];
        lines.extend(others.iter().map(String::as_str));
        lines.push("1:2:10:1:11:1");
        let (_folder, prv) = of_lines(1, &lines);
        let found = streams(&prv);
        assert_eq!((found.tasks, found.resumed), (others.len() + 1, resumed));
        assert_eq!(found.executed, others.len() + 2 - resumed);
        assert_eq!((found.type_ns["a"], found.type_ns["b"]), (99, 1));
    }
}

#[test]
fn a_value_that_stays_is_known_by_the_next_record_of_the_row() {
    // Task 2 is known to have the type of task 1 by the state, before task 3 begins in the other row.
    let (_folder, prv) = of_lines(
        2,
        &["1:0:10:1:11:1", "1:10:10:2", "2:20:10:3:11:2", "1:30:10:0:11:0", "2:40:10:0:11:0"],
    );
    fs::write(prv.with_extension("pcf"), format!("STATES\n1    Running\n\n{PCF}")).unwrap();
    let text = fs::read_to_string(&prv).unwrap();
    let with_state = text.replace("2:0:1:1:2:20:", "1:0:1:1:1:15:25:1\n2:0:1:1:2:20:");
    for text in [text, with_state] {
        fs::write(&prv, text).unwrap();
        let found = streams(&prv);
        assert_eq!((found.tasks, found.executed), (3, 3));
        assert_eq!((found.type_ns["a"], found.type_ns["b"]), (30, 20));
    }
}

#[test]
fn a_folder_that_has_something_is_refused() {
    let (folder, prv) = trace();
    let out = folder.path().join("out");
    fs::write(&out, "earlier").unwrap();
    let error = convert_to_ovni(&prv, &out).unwrap_err().to_string();
    assert!(error.ends_with("out: not a folder"), "{error}");
    assert_eq!(fs::read_to_string(&out).unwrap(), "earlier");
    let error = convert_to_ovni(&prv, folder.path()).unwrap_err().to_string();
    assert!(error.ends_with(": the folder is not empty"), "{error}");
    fs::remove_file(&out).unwrap();
    fs::create_dir(&out).unwrap();
    convert_to_ovni(&prv, &out).unwrap();
    let error = convert_to_ovni(&prv, out).unwrap_err().to_string();
    assert!(error.ends_with("out: the folder is not empty"), "{error}");
}

#[test]
fn what_ovni_cannot_have_is_refused_and_leaves_nothing() {
    let large = format!("1:0:10:1:11:{}", u64::from(u32::MAX) + 1);
    let largest = format!("1:0:10:{}:11:{}", u64::from(u32::MAX) + 1, u32::MAX);
    let cases: [(&[&str], &str); 5] = [
        (&[], "has no tasks: no row shows a task id (type 10) with a task type (type 11)"),
        (&["1:0:11:1"], "has no tasks"),
        (&[&large], "has task type 4294967296; those of ovni end at 4294967295"),
        (&["1:0:10:1:11:-1"], "has task type -1"),
        (&["1:0:10:1:11:1", "1:5:10:1:11:2"], "task 1 of rank 0 has the types 1 and 2"),
    ];
    for (lines, expected) in cases {
        let (folder, prv) = of_lines(1, lines);
        let error = convert_to_ovni(&prv, folder.path().join("out")).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
    let (_folder, prv) = of_lines(1, &[&largest]);
    assert_eq!(streams(&prv).tasks, 1);
}

#[test]
fn broken_input_is_named_with_its_line() {
    let (folder, prv) = of_lines(1, &["1:0:10:1:11:1", "1:7:10:1:11", "1:9:10:0:11:0"]);
    let error = convert_to_ovni(&prv, folder.path().join("out")).unwrap_err();
    assert!(matches!(error, Error::BadRecord { line: 3, .. }), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

/// Next act of a worker of a random run.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// A task of a rank begins inside the one that runs, if one does.
    Begin(u32),
    /// The task that runs ends.
    End,
    /// The task that runs is suspended: another worker may go on with it.
    Suspend,
    /// A suspended task goes on.
    GoOn,
    /// The worker idles, if it has no task.
    Idle,
}

fn act() -> impl Strategy<Value = (usize, u64, Act)> {
    let act = prop_oneof![
        (0..3_u32).prop_map(Act::Begin),
        Just(Act::End),
        Just(Act::Suspend),
        Just(Act::GoOn),
        Just(Act::Idle),
    ];
    (0..3_usize, 0..4_u64, act)
}

/// Task that is open on a worker, with the begin of its slice.
#[derive(Clone, Copy, Debug)]
struct Open {
    rank: u32,
    task: u64,
    started: bool,
    began_ns: u64,
}

proptest! {
    #[test]
    fn random_runs_are_legal(acts in prop::collection::vec(act(), 1..120)) {
        let recorder = Recorder::default();
        let labels = ["one", "two", "three"].map(|label| recorder.label(label));
        let mut workers = [(); 3].map(|()| Vec::<Open>::new());
        let mut streams = [0, 1, 2].map(|worker| recorder.stream(worker));
        let (mut now_ns, mut tasks, mut suspended) = (0, 0, Vec::<Open>::new());
        let slice = |open: Open| Event::TaskSlice {
            starts: !open.started,
            rank: open.rank,
            task: open.task,
            label: labels[(open.task % 3) as usize],
            began_ns: open.began_ns,
        };
        for (worker, wait_ns, act) in acts {
            let (stack, stream) = (&mut workers[worker], &mut streams[worker]);
            now_ns += wait_ns;
            match act {
                Act::Begin(rank) => {
                    tasks += 1;
                    stack.push(Open { rank, task: tasks, started: false, began_ns: now_ns });
                }
                Act::GoOn if !suspended.is_empty() => {
                    stack.push(Open { began_ns: now_ns, ..suspended.remove(0) });
                }
                Act::End | Act::Suspend => {
                    let Some(open) = stack.pop() else { continue };
                    now_ns += 1;
                    stream.record(now_ns, slice(open));
                    if matches!(act, Act::Suspend) {
                        suspended.push(Open { started: true, ..open });
                    }
                }
                Act::Idle if stack.is_empty() => {
                    let began_ns = now_ns;
                    now_ns += 5;
                    stream.record(now_ns, state(State::Idle, began_ns));
                }
                Act::GoOn | Act::Idle => {}
            }
        }
        for (stack, stream) in workers.iter_mut().zip(&mut streams) {
            while let Some(open) = stack.pop() {
                now_ns += 1;
                stream.record(now_ns, slice(open));
            }
        }
        drop(streams);
        prop_assume!(tasks > 0);
        let folder = TempDir::new().unwrap();
        let files = recorder.write_paraver(folder.path(), "run", &info(3, 3, now_ns + 10)).unwrap();
        let found = self::streams(&files.prv);
        prop_assert_eq!(found.streams, 9);
    }
}

#[test]
fn more_labels_than_ovni_takes_are_cut() {
    let recorder = Recorder::default();
    let long = recorder.label(&"ä".repeat(400));
    let slice = Event::TaskSlice { starts: true, rank: 0, task: 1, label: long, began_ns: 0 };
    recorder.stream(0).record(10, slice);
    let folder = TempDir::new().unwrap();
    let files = recorder.write_paraver(folder.path(), "run", &info(1, 1, 20)).unwrap();
    let out = folder.path().join("ovni");
    convert_to_ovni(&files.prv, &out).unwrap();
    assert_eq!(emulate(&out, |_| {}).type_ns[&"ä".repeat(255)], 10);
}
