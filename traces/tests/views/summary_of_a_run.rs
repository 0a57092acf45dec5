//! The summary of a trace says what its records say.

use std::collections::BTreeMap;
use std::path::PathBuf;

use talpf_traces::{
    Distribution, Event, MessageKind, PairSummary, Recorder, Summary, SyncArrivals, SyncMode,
    TraceInfo, ValueKind, WaitNs,
};
use tempfile::TempDir;

use crate::support::{ended, info, sample::sample};

/// Two ranks on two workers, 1,000 ns: worker 0 computes 600 ns for rank 0, in two tasks, worker 1
/// 300 ns for rank 1; rank 0 puts 4,096 bytes to rank 1, and rank 1 ends a round.
fn run() -> (Recorder, TraceInfo) {
    let recorder = Recorder::default();
    let [stencil, edge] = ["stencil", "edge"].map(|label| recorder.label(label));
    let mode = SyncMode { arrivals: SyncArrivals::Cached, barrier: false, ack: false };
    let slice = |rank, task, label, began_ns| Event::TaskSlice {
        starts: true,
        rank,
        task,
        label,
        began_ns,
    };
    let kind = MessageKind::Put;
    let (message, bytes, waited) = (1, 4_096, WaitNs::between(0, 10));
    let mut worker = recorder.stream(0);
    worker.record(500, slice(0, 1, stencil, 0));
    worker.record(520, Event::Send { kind, rank: 0, peer: 1, message, bytes, waited });
    worker.record(600, slice(0, 2, edge, 500));
    let mut worker = recorder.stream(1);
    worker.record(300, slice(1, 3, stencil, 0));
    worker.record(400, Event::SyncBegin { rank: 1, lane: 0, round: 0, mode, expected: Some(1) });
    worker.record(700, Event::Receive { rank: 1, peer: 0, message, lane: 0, round: 0 });
    worker.record(703, ended(1, 0, 0));
    (recorder, info(2, 2, 1_000))
}

fn written((recorder, info): &(Recorder, TraceInfo)) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let files = recorder.write_paraver(folder.path(), "run", info).unwrap();
    (folder, files.prv)
}

#[test]
fn times_tasks_syncs_and_messages() {
    let (_folder, prv) = written(&run());
    let summary = Summary::of(prv).unwrap();
    assert_eq!((summary.duration_ns, summary.workers), (1_000, 2));
    let efficiency = summary.efficiency;
    assert_eq!(efficiency.parallel, 0.45);
    assert_eq!(efficiency.load_balance, 0.75);
    assert_eq!(efficiency.communication, 0.6);

    let running: Vec<u64> = summary.ranks.iter().map(|rank| rank.states_ns["Running"]).collect();
    assert_eq!(running, [600, 300]);
    let of_ranks = |what: fn(&talpf_traces::RankSummary) -> u64| -> Vec<u64> {
        summary.ranks.iter().map(what).collect()
    };
    assert_eq!(of_ranks(|rank| rank.states_ns.values().sum()), [600, 703]);
    assert_eq!(of_ranks(|rank| rank.tasks), [2, 1]);
    assert_eq!(of_ranks(|rank| rank.rounds), [0, 1]);
    assert_eq!(of_ranks(|rank| rank.bytes_sent), [4_096, 0]);
    assert_eq!(of_ranks(|rank| rank.bytes_received), [0, 4_096]);

    let stencil = &summary.tasks["stencil"];
    assert_eq!((stencil.tasks, stencil.slices.count, stencil.slices.total_ns), (2, 2, 800));
    assert!((297..=303).contains(&stencil.slices.median_ns), "{stencil:?}");
    assert!((495..=505).contains(&stencil.slices.p99_ns), "{stencil:?}");
    assert_eq!(summary.tasks["edge"].slices.total_ns, 100);
    assert_eq!(
        summary.syncs["cached"],
        Distribution {
            count: 1,
            total_ns: 3,
            quartile1_ns: 3,
            median_ns: 3,
            quartile3_ns: 3,
            p99_ns: 3
        }
    );
    let messages = &summary.messages;
    assert_eq!(messages.kinds, BTreeMap::from([("put".to_owned(), 1)]));
    assert_eq!((messages.latency.count, messages.latency.total_ns), (1, 180));
    assert_eq!(messages.pairs, [PairSummary { from: 0, to: 1, messages: 1, bytes: 4_096 }]);
    assert!(summary.lost.is_empty());
}

#[test]
fn a_task_that_helps_runs_in_slices() {
    let recorder = Recorder::default();
    let label = recorder.label("main");
    let mut worker = recorder.stream(0);
    let inner = Event::TaskSlice { starts: true, rank: 0, task: 2, label, began_ns: 100 };
    worker.record(200, inner);
    let outer = Event::TaskSlice { starts: true, rank: 0, task: 1, label, began_ns: 0 };
    worker.record(300, outer);
    drop(worker);
    let (_folder, prv) = written(&(recorder, info(1, 1, 300)));
    let main = Summary::of(prv).unwrap().tasks["main"];
    assert_eq!((main.tasks, main.slices.count, main.slices.total_ns), (2, 3, 300));
}

#[test]
fn whatever_happens_at_one_time_counts() {
    let recorder = Recorder::default();
    let [long, none] = ["long", "none"].map(|label| recorder.label(label));
    let slice =
        |task, label, began_ns| Event::TaskSlice { starts: true, rank: 0, task, label, began_ns };
    let mode = SyncMode { arrivals: SyncArrivals::Cached, barrier: false, ack: false };
    let mut worker = recorder.stream(0);
    for (lane, task) in [(0, 1), (1, 2)] {
        worker.record(0, slice(task, none, 0));
        worker.record(0, Event::SyncBegin { rank: 0, lane, round: 0, mode, expected: None });
    }
    worker.record(40, ended(0, 0, 0));
    worker.record(40, ended(0, 1, 0));
    worker.record(40, slice(3, none, 40));
    worker.record(100, slice(4, long, 40));
    drop(worker);
    let (_folder, prv) = written(&(recorder, info(1, 1, 100)));
    let summary = Summary::of(prv).unwrap();
    assert_eq!((summary.ranks[0].tasks, summary.ranks[0].rounds), (4, 2));
    assert_eq!((summary.tasks["none"].tasks, summary.tasks["none"].slices.total_ns), (3, 0));
    assert_eq!((summary.tasks["long"].tasks, summary.tasks["long"].slices.total_ns), (1, 60));
    // Both syncs are awaited in the same 3 ns.
    assert_eq!((summary.syncs["cached"].count, summary.syncs["cached"].total_ns), (2, 3));
}

#[test]
fn idleness_is_shared_by_cause_and_a_slow_core_counts_as_load() {
    let recorder = Recorder::default();
    let label = recorder.label("main");
    let value = |kind, value| Event::Value { rank: 1, kind, value };
    let slice = |rank, began_ns| Event::TaskSlice {
        starts: true,
        rank,
        task: began_ns + 1,
        label,
        began_ns,
    };
    let (posted, arrived) = (WaitNs::between(100, 800), WaitNs::default());
    let end = Event::SyncEnd { rank: 0, lane: 0, round: 0, posted, arrived };
    let mut first = recorder.stream(0);
    first.record(100, slice(0, 0));
    first.record(800, end);
    first.record(900, Event::Idle { began_ns: 100, ready: 0 });
    first.record(1_000, slice(0, 900));
    let mut second = recorder.stream(1);
    second.record(50, value(ValueKind::TimedPart, 1));
    second.record(200, slice(1, 0));
    second.record(200, value(ValueKind::SlowCores, 1));
    second.record(900, value(ValueKind::SlowCores, 0));
    second.record(900, Event::Idle { began_ns: 200, ready: 0 });
    second.record(950, value(ValueKind::TimedPart, 0));
    second.record(1_000, slice(1, 900));
    drop((first, second));
    let (_folder, prv) = written(&(recorder, info(2, 2, 1_000)));
    let summary = Summary::of(prv).unwrap();
    let idle = |causes: &[(&str, u64)]| -> BTreeMap<String, u64> {
        causes.iter().map(|(cause, time)| ((*cause).to_owned(), *time)).collect()
    };
    assert_eq!(summary.ranks[0].idle_ns, idle(&[("communication", 700), ("supply", 100)]));
    assert_eq!(summary.ranks[1].idle_ns, idle(&[("slow core", 700)]));
    assert_eq!((summary.limited_by, summary.timed_ns), ("load balance", 900));
    assert_eq!(summary.efficiency.communication, 1.0);
    let text = summary.to_string();
    assert!(text.contains("most is lost by load balance\n"), "{text}");
    assert!(text.contains("rank 0               70.0 %      0.0 %  10.0 %\n"), "{text}");
}

#[test]
fn what_is_lost_is_said() {
    let recorder = Recorder::new(1);
    let mut worker = recorder.stream(0);
    for time in 710..720 {
        worker.record(time, ended(0, 0, time));
    }
    drop(worker);
    let (_folder, prv) = written(&(recorder, info(1, 1, 1_000)));
    let summary = Summary::of(prv).unwrap();
    assert_eq!(summary.lost.len(), 1, "{:?}", summary.lost);
    assert!(summary.to_string().contains("incomplete: "), "{summary}");
}

#[test]
fn the_text_has_every_figure() {
    let (_folder, prv) = written(&run());
    let text = Summary::of(prv).unwrap().to_string();
    for part in [
        "1000 ns, 2 ranks, 2 workers",
        "parallel efficiency 45.0 % = load balance 75.0 % x communication efficiency 60.0 %",
        "stencil",
        "cached",
        "1 message (put 1), 4096 bytes; latency: median 18",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn traces_of_others_without_labels_and_cpus() {
    let folder = TempDir::new().unwrap();
    let prv = folder.path().join("x.prv");
    let text = "#Paraver (21/11/2026 at 02:40):10_us:0:1:1(2:0)\n\
                1:0:1:1:1:0:10:1\n1:0:1:1:2:0:5:1\n1:0:1:1:2:5:10:0\n";
    std::fs::write(&prv, text).unwrap();
    let summary = Summary::of(prv).unwrap();
    assert_eq!((summary.duration_ns, summary.workers), (10_000, 2));
    assert_eq!(summary.ranks[0].states_ns["state 1"], 15_000);
    assert_eq!(summary.efficiency.parallel, 0.75);
}

#[test]
fn a_record_that_cannot_be_read_is_named() {
    let mut trace = sample();
    trace.prv = trace.prv.replace("2:1:1:1:1:10", "2:1:1:1:9:10");
    let folder = TempDir::new().unwrap();
    let prv = folder.path().join("run.prv");
    std::fs::write(&prv, &trace.prv).unwrap();
    let error = Summary::of(&prv).unwrap_err().to_string();
    let named = format!("{}:6: thread 9; task 1.1 has 1, numbered from 1", prv.display());
    assert_eq!(error, named);
}
