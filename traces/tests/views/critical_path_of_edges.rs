//! The summary of a trace with edges of the graph finds the longest chain of slices and messages.

use std::collections::BTreeMap;

use proptest::prelude::*;
use talpf_traces::{
    CriticalPath, Event, MessageKind, PathShare, Recorder, Summary, TraceInfo, WaitNs,
};
use tempfile::TempDir;

use crate::support::{ended, info};

/// Slice of a task of rank 0 with the name of a type, from a time to another.
type Slice<'a> = (u64, &'a str, u64, u64);

/// Records slices of a worker, and edges at their times: a task and the one that made it ready.
fn record(recorder: &Recorder, worker: u32, slices: &[Slice<'_>], edges: &[(u64, u64, u64)]) {
    let mut stream = recorder.stream(worker);
    let slice = |&(task, name, began_ns, end_ns): &Slice<'_>| {
        let label = recorder.label(name);
        (end_ns, Event::TaskSlice { starts: true, rank: 0, task, label, began_ns })
    };
    let edge =
        |&(time_ns, task, by): &(u64, u64, u64)| (time_ns, Event::Ready { rank: 0, task, by });
    let mut events: Vec<_> = edges.iter().map(edge).chain(slices.iter().map(slice)).collect();
    events.sort_by_key(|(time_ns, _)| *time_ns);
    events.into_iter().for_each(|(time_ns, event)| stream.record(time_ns, event));
}

fn summary_of(recorder: &Recorder, info: &TraceInfo) -> Summary {
    let folder = TempDir::new().unwrap();
    let files = recorder.write_paraver(folder.path(), "run", info).unwrap();
    let report = talpf_traces::paraver::check(&files.prv).unwrap();
    assert!(report.is_clean(), "{report}");
    Summary::of(files.prv).unwrap()
}

fn path_of(recorder: &Recorder, info: &TraceInfo) -> CriticalPath {
    summary_of(recorder, info).critical_path.expect("a trace with edges")
}

fn shares(of: &[(&str, u64, u64)]) -> BTreeMap<String, PathShare> {
    let share = |&(name, count, total_ns): &(&str, u64, u64)| {
        (name.to_owned(), PathShare { count, total_ns })
    };
    of.iter().map(share).collect()
}

#[test]
fn of_a_chain_all_is_on_the_path() {
    let recorder = Recorder::default();
    record(&recorder, 0, &[(1, "a", 10, 30), (3, "a", 70, 100)], &[(30, 2, 1)]);
    record(&recorder, 1, &[(2, "b", 35, 60), (4, "c", 0, 45)], &[(60, 3, 2)]);
    let path = path_of(&recorder, &info(1, 2, 100));
    assert_eq!((path.length_ns, path.span_ns), (75, 90));
    assert_eq!(path.tasks, shares(&[("a", 2, 50), ("b", 1, 25)]));
    assert_eq!((path.messages, path.most.as_str()), (PathShare::default(), "a"));
}

#[test]
fn of_a_fork_the_longer_branch_is_on_the_path() {
    let recorder = Recorder::default();
    // The join waits for the longer branch; the fork releases both before it ends.
    let first = [(1, "fork", 0, 20), (2, "short", 20, 40), (4, "join", 80, 95)];
    record(&recorder, 0, &first, &[(10, 2, 1), (10, 3, 1)]);
    record(&recorder, 1, &[(3, "long", 12, 80)], &[(80, 4, 3)]);
    let path = path_of(&recorder, &info(1, 2, 100));
    assert_eq!((path.length_ns, path.span_ns), (10 + 68 + 15, 95));
    assert_eq!(path.tasks, shares(&[("fork", 1, 10), ("join", 1, 15), ("long", 1, 68)]));
    assert_eq!(path.most, "long");
}

#[test]
fn the_time_of_a_task_is_without_those_that_interrupt_it() {
    let recorder = Recorder::default();
    let slices = [(2, "helped", 10, 30), (1, "main", 0, 50), (3, "last", 50, 55)];
    record(&recorder, 0, &slices, &[(50, 3, 1)]);
    let path = path_of(&recorder, &info(1, 1, 60));
    assert_eq!(path.tasks, shares(&[("last", 1, 5), ("main", 1, 30)]));
}

#[test]
fn a_task_that_is_woken_goes_on_from_the_longer_chain() {
    let recorder = Recorder::default();
    // A body that awaits another: the rest of it is behind that one.
    let slices = [(1, "main", 0, 10), (2, "child", 10, 60), (1, "main", 60, 65)];
    record(&recorder, 0, &slices, &[(5, 2, 1), (60, 1, 2)]);
    let path = path_of(&recorder, &info(1, 1, 70));
    assert_eq!(path.length_ns, 5 + 50 + 5);
    assert_eq!(path.tasks, shares(&[("child", 1, 50), ("main", 2, 10)]));
}

/// A put of rank 0, sent at 20 in a task that has run 15 then, arrives at rank 1 at 50; the sync of rank 1
/// ends its body at a time, and releases the reader after the message.
fn message(ended_ns: u64) -> CriticalPath {
    let recorder = Recorder::default();
    let [put, sync, read] = ["put", "sync", "read"].map(|name| recorder.label(name));
    let slice = |rank, task, label, began_ns| Event::TaskSlice {
        starts: true,
        rank,
        task,
        label,
        began_ns,
    };
    let (kind, waited) = (MessageKind::Put, WaitNs::between(20, 25));
    let mut first = recorder.stream(0);
    first.record(25, Event::Send { kind, rank: 0, peer: 1, message: 1, bytes: 8, waited });
    first.record(30, slice(0, 1, put, 5));
    let mut second = recorder.stream(1);
    second.record(50, Event::Receive { rank: 1, peer: 0, message: 1, lane: 0, round: 0 });
    second.record(ended_ns, slice(1, 2, sync, 2));
    second.record(52, ended(1, 0, 0));
    second.record(53, Event::Ready { rank: 1, task: 3, by: 2 });
    second.record(90, slice(1, 3, read, 55));
    drop((first, second));
    path_of(&recorder, &info(2, 2, 100))
}

#[test]
fn a_message_that_a_task_has_waited_for_is_on_the_path() {
    let path = message(12);
    assert_eq!(path.messages, PathShare { count: 1, total_ns: 30 });
    assert_eq!(path.tasks, shares(&[("put", 1, 15), ("read", 1, 35)]));
    assert_eq!((path.length_ns, path.span_ns), (80, 85));
    assert_eq!(path.most, "read");
}

#[test]
fn a_message_that_was_there_before_is_not() {
    let path = message(51);
    assert_eq!(path.messages, PathShare::default());
    assert_eq!(path.tasks, shares(&[("read", 1, 35), ("sync", 1, 49)]));
}

#[test]
fn without_edges_nothing_is_said() {
    let recorder = Recorder::default();
    record(&recorder, 0, &[(1, "a", 10, 30)], &[]);
    let summary = summary_of(&recorder, &info(1, 1, 100));
    assert_eq!(summary.critical_path, None);
    assert!(!summary.to_string().contains("critical"), "{summary}");
    assert!(!serde_json::to_string(&summary).unwrap().contains("critical"));
}

#[test]
fn the_text_has_the_path() {
    let recorder = Recorder::default();
    record(&recorder, 0, &[(1, "a", 0, 30), (2, "b", 30, 50)], &[(30, 2, 1)]);
    let text = summary_of(&recorder, &info(1, 1, 100)).to_string();
    for part in [
        "critical path: 50 ns, 50.0 % of the trace, within 50 ns\n",
        "it shortens most with less time in a\n",
        "on the critical path",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(Summary::EXPLANATION.contains("critical path"));
}

#[test]
fn many_edges_of_one_time_are_followed_in_order() {
    const TASKS: u64 = 300;
    let recorder = Recorder::default();
    let last = TASKS + 1;
    let none: Vec<_> = (2..=TASKS).map(|task| (task, "none", 10, 10)).collect();
    record(&recorder, 0, &[(1, "first", 0, 10)], &[]);
    record(&recorder, 1, &none, &[]);
    record(&recorder, 2, &[(last, "last", 10, 20)], &[]);
    // In the reverse order.
    let edges: Vec<_> = (2..=last).rev().map(|task| (10, task, task - 1)).collect();
    record(&recorder, 0, &[], &edges);
    let path = path_of(&recorder, &info(1, 3, 20));
    assert_eq!(path.length_ns, 20);
    assert_eq!(path.tasks, shares(&[("first", 1, 10), ("last", 1, 10)]));
}

/// Task of a random graph: time, tasks before it, type.
type RandomTask = (u64, Vec<prop::sample::Index>, u8);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_graphs_have_the_longest_path_of_their_edges(
        tasks in prop::collection::vec(
            (0..50u64, prop::collection::vec(any::<prop::sample::Index>(), 0..4), 0..3u8), 1..60),
        workers in 1..4usize,
    ) {
        let (path, expected) = run_graph(&tasks, workers);
        let Some(path) = path else {
            prop_assert!(expected.is_none());
            return Ok(());
        };
        prop_assert_eq!(Some(path.length_ns), expected);
        let parts = path.tasks.values().map(|share| share.total_ns).sum::<u64>();
        prop_assert_eq!(parts, path.length_ns);
        prop_assert!(path.span_ns >= path.length_ns);
    }
}

/// Runs a graph as a runtime does, and returns the path that the summary finds and the longest one.
fn run_graph(tasks: &[RandomTask], workers: usize) -> (Option<CriticalPath>, Option<u64>) {
    let recorder = Recorder::default();
    let mut slices: Vec<Vec<Slice<'_>>> = vec![Vec::new(); workers];
    let mut edges = vec![Vec::new(); workers];
    let (mut free_ns, mut ends, mut lengths) = (vec![0; workers], Vec::new(), Vec::new());
    for (index, (ns, before, kind)) in tasks.iter().enumerate() {
        let before = before.iter().filter(|_| index > 0).map(|before| before.index(index));
        let last = before.max_by_key(|&before: &usize| ends[before]);
        let ready_ns = last.map_or(0, |last| ends[last]);
        let worker = (0..workers).min_by_key(|&worker| free_ns[worker]).unwrap();
        let begin_ns: u64 = ready_ns.max(free_ns[worker]);
        let task = index as u64 + 1;
        if let Some(last) = last {
            edges[worker].push((ready_ns, task, last as u64 + 1));
        }
        lengths.push(ns + last.map_or(0, |last: usize| lengths[last]));
        slices[worker].push((task, ["a", "b", "c"][*kind as usize], begin_ns, begin_ns + ns));
        free_ns[worker] = begin_ns + ns;
        ends.push(begin_ns + ns);
    }
    for worker in 0..workers {
        record(&recorder, worker as u32, &slices[worker], &edges[worker]);
    }
    let longest = lengths.into_iter().max();
    let end_ns = free_ns.into_iter().max().unwrap().max(1);
    let has_edges = edges.iter().any(|edges| !edges.is_empty());
    let summary = summary_of(&recorder, &info(1, workers as u32, end_ns));
    (summary.critical_path, longest.filter(|_| has_edges))
}
