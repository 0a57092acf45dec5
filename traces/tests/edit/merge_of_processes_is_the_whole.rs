//! The traces of processes, with clocks of their own, merge into that of one recorder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use talpf_traces::paraver::{Communication, Reader, Record, check, merge};
use talpf_traces::{
    ClockReading, Event, Extent, Keep, Limits, MessageKind, Recorder, RunProcess, RunProcesses,
    WaitNs, recover,
};
use tempfile::TempDir;

use crate::support::{ended, info};

/// Sender and receiver, the four times, bytes and tag.
type Message = (u32, u32, [u64; 4], u64, i64);

/// Messages, and the sum of the times of each task type by rank.
fn contents(prv: &Path) -> (Vec<Message>, BTreeMap<(u32, String), u64>) {
    let mut reader = Reader::open(prv).unwrap();
    let ranks = reader.ranks_of_rows().to_vec();
    let names: BTreeMap<i64, String> =
        reader.labelled_values(11).map(|(value, name)| (value, name.to_owned())).collect();
    let (mut messages, mut tasks, mut open) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    reader
        .read(|record| match record {
            Record::Communication(message) => {
                let Communication { sender, receiver, bytes, tag, .. } = message;
                let times = [
                    message.logical_send_ns,
                    message.send_ns,
                    message.receive_ns,
                    message.logical_receive_ns,
                ];
                messages.push((ranks[sender], ranks[receiver], times, bytes, tag));
            }
            Record::Event { row, time_ns, values, .. } => {
                for (_, value) in values.iter().filter(|(kind, _)| *kind == 11) {
                    if let Some((label, since_ns)) = open.remove(&row) {
                        *tasks.entry((ranks[row], label)).or_default() += time_ns - since_ns;
                    }
                    if *value != 0 {
                        open.insert(row, (names[value].clone(), time_ns));
                    }
                }
            }
            Record::State { .. } => {}
        })
        .unwrap();
    messages.sort_unstable();
    (messages, tasks)
}

/// Recorder of process `own`, which has the rank of this number and a worker.
fn of_process(own: u32) -> Recorder {
    let recorder = Recorder::default();
    let all = vec![RunProcess { machine: 7, workers: 1 }; 2];
    recorder.set_processes(RunProcesses { own, ranks_each: 1, all });
    recorder
}

/// A task and its message: wait before the task, its length, size of the data, `true` from rank 1 to 0.
type Step = (u64, u64, u64, bool);

/// Records the steps of both ranks, each with a recorder and a worker of its own, at times that `clock`
/// converts. Returns the time of their end.
fn record(
    recorders: [&Recorder; 2],
    workers: [u32; 2],
    steps: &[Step],
    clock: impl Fn(usize, u64) -> u64,
) -> u64 {
    // One name has other numbers in other processes.
    for (recorder, names) in recorders.iter().zip([["put", "main"], ["main", "put"]]) {
        names.iter().for_each(|name| _ = recorder.label(name));
    }
    let mut streams = [0, 1].map(|rank| recorders[rank].stream(workers[rank]));
    let mut now = 100;
    for (index, &(wait, length, bytes, to_first)) in (0_u64..).zip(steps) {
        let (from, to) = if to_first { (1, 0) } else { (0, 1) };
        let (kind, rank, peer) = (MessageKind::Put, from as u32, to as u32);
        let label = recorders[from].label(if index % 3 == 0 { "main" } else { "put" });
        let [began_ns, ended_ns] = [wait, wait + length].map(|after| clock(from, now + after));
        let (task, starts) = (index + 1, true);
        let slice = Event::TaskSlice { starts, rank, task, label, began_ns };
        streams[from].record(ended_ns, slice);
        let waited = WaitNs::between(began_ns, ended_ns);
        let send = Event::Send { kind, rank, peer, message: index, bytes, waited };
        streams[from].record(ended_ns, send);
        // Control messages have numbers of their own.
        let control = MessageKind::ALL[6 + index as usize % 4];
        let send = Event::Send { kind: control, rank, peer, message: index, bytes: 0, waited };
        streams[from].record(ended_ns, send);
        now += 2 * wait + length + 2;
        let (rank, peer) = (peer, rank);
        let receive = Event::Receive { rank, peer, message: index, lane: 1, round: index };
        streams[to].record(clock(to, now), receive);
        let (kind, message, lane, round) = (control, index, 1, index);
        let receive = Event::ReceiveControl { kind, rank, peer, message, lane, round };
        streams[to].record(clock(to, now), receive);
        now += 1;
        streams[to].record(clock(to, now), ended(rank, 1, index));
    }
    now + 5
}

fn clean(prv: &Path) {
    let report = check(prv).unwrap();
    assert!(report.is_clean(), "{report}\n{}", fs::read_to_string(prv).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_the_clocks_say(
        steps in prop::collection::vec((0..9_u64, 1..9_u64, 0..99_u64, any::<bool>()), 1..40),
        ahead in 0..5_000_u64,
        drift in 0..3_u64,
    ) {
        let folder = TempDir::new().unwrap();
        let one = Recorder::default();
        let end_ns = record([&one, &one], [0, 1], &steps, |_, time| time);
        let whole = one.write_paraver(folder.path(), "one", &info(2, 2, end_ns)).unwrap();

        // The clock of process 1 runs faster by a whole factor, which loses nothing.
        let clock = |rank: usize, time: u64| {
            if rank == 0 { time } else { ahead + time * (1 + drift) }
        };
        let recorders = [of_process(0), of_process(1)];
        for time in [10, end_ns] {
            let reading = |rank| {
                ClockReading { here_ns: clock(rank, time), there_ns: time, error_ns: time % 7 }
            };
            (0..2).for_each(|rank| recorders[rank].note_clock(reading(rank)));
        }
        record(recorders.each_ref(), [0, 0], &steps, clock);
        let pieces: Vec<PathBuf> = (0..2_usize)
            .map(|rank| {
                let info = info(2, 1, clock(rank, end_ns));
                let files = recorders[rank].write_paraver(folder.path(), "run", &info).unwrap();
                assert!(files.prv.ends_with(format!("run.rank-{rank}.prv")));
                clean(&files.prv);
                files.prv
            })
            .collect();
        let merged = merge(&pieces, folder.path().join("run.prv")).unwrap();
        clean(&merged.prv);
        let text = fs::read_to_string(&merged.prv).unwrap();
        prop_assert!(!text.contains("preceded"), "{text}");
        prop_assert!(!text.contains("in none of these"), "{text}");
        prop_assert!(text.contains("# clocks of all processes corrected, within "), "{text}");
        let (mut messages, tasks) = contents(&merged.prv);
        // The trace begins where process 1 does, which is before process 0.
        let begins_ns = ahead.div_ceil(1 + drift);
        for (_, _, times, ..) in &mut messages {
            times.iter_mut().for_each(|time| *time -= begins_ns);
        }
        prop_assert_eq!((messages, tasks), contents(&whole.prv));
    }
}

/// Each process numbers its tasks.
#[test]
fn edges_of_the_graph_stay_in_the_traces_of_the_processes() {
    let folder = TempDir::new().unwrap();
    let ready_tasks = |prv: &Path| {
        let (mut reader, mut count) = (Reader::open(prv).unwrap(), 0);
        let is_edge = |(kind, _): &&(u32, i64)| [95_000_028, 95_000_029].contains(kind);
        let visit = |record: Record<'_>| {
            if let Record::Event { values, .. } = record {
                count += values.iter().filter(is_edge).count();
            }
        };
        reader.read(visit).unwrap();
        count
    };
    let piece = |rank: u32| {
        let recorder = of_process(rank);
        for time in [10, 90] {
            let reading = ClockReading { here_ns: time, there_ns: time, error_ns: 1 };
            recorder.note_clock(reading);
        }
        let mut stream = recorder.stream(0);
        stream.record(20, Event::Ready { rank, task: 1, by: 2 });
        drop(stream);
        let files = recorder.write_paraver(folder.path(), "run", &info(2, 1, 100)).unwrap();
        assert_eq!(ready_tasks(&files.prv), 2);
        files.prv
    };
    let merged = merge(&[0, 1].map(piece), folder.path().join("run.prv")).unwrap();
    clean(&merged.prv);
    assert_eq!(ready_tasks(&merged.prv), 0);
}

#[test]
fn a_lost_process_costs_its_rows_and_its_messages() {
    let folder = TempDir::new().unwrap();
    let recorders = [of_process(0), of_process(1)];
    let steps = [(1, 2, 3, false), (4, 5, 6, true)];
    let end_ns = record(recorders.each_ref(), [0, 0], &steps, |_, time| time);
    let piece = |rank: usize| {
        recorders[rank].write_paraver(folder.path(), "run", &info(2, 1, end_ns)).unwrap().prv
    };
    let (first, second) = (piece(0), piece(1));
    let alone = merge(&[&first], folder.path().join("alone.prv")).unwrap();
    clean(&alone.prv);
    let text = fs::read_to_string(&alone.prv).unwrap();
    assert!(text.contains("# 2 sends have their receive in none of these traces\n"), "{text}");
    assert!(text.contains("# 2 receives have their send in none of these traces\n"), "{text}");
    let (messages, tasks) = contents(&alone.prv);
    assert!(messages.is_empty() && tasks.keys().all(|(rank, _)| *rank == 0), "{tasks:?}");
    // Nothing is lost for a later merge.
    let later = merge(&[&alone.prv, &second], folder.path().join("later.prv")).unwrap();
    let both = merge(&[&first, &second], folder.path().join("both.prv")).unwrap();
    clean(&later.prv);
    assert_eq!(contents(&later.prv), contents(&both.prv));
    assert_eq!(contents(&both.prv).0.len(), 4);
    assert!(!fs::read_to_string(later.prv).unwrap().contains("in none of these traces"));
}

#[test]
fn a_receive_before_its_send_is_moved_to_it_and_counted() {
    let folder = TempDir::new().unwrap();
    let recorders = [of_process(0), of_process(1)];
    // The second clock is late by 50 ns, and nobody has read it.
    let clock = |rank: usize, time: u64| if rank == 0 { time } else { time - 50 };
    let end_ns = record(recorders.each_ref(), [0, 0], &[(1, 2, 3, false)], clock);
    let pieces = recorders
        .map(|of| of.write_paraver(folder.path(), "run", &info(2, 1, end_ns)).unwrap().prv);
    let merged = merge(&pieces, folder.path().join("merged.prv")).unwrap();
    clean(&merged.prv);
    let text = fs::read_to_string(&merged.prv).unwrap();
    let moved = "# 2 receives preceded their send, by 45 ns at most, and were moved to it\n";
    assert!(text.contains(moved), "{text}");
    let [(_, _, [called, sent, received, _], ..), _] = contents(&merged.prv).0[..] else {
        panic!("{text}");
    };
    assert_eq!([called, sent, received], [101, 103, 103]);
}

#[test]
fn cpus_are_counted_machine_by_machine() {
    let folder = TempDir::new().unwrap();
    let all = [(5, 2), (3, 1), (5, 3)].map(|(machine, workers)| RunProcess { machine, workers });
    let of = |own| {
        let recorder = Recorder::default();
        let processes = RunProcesses { own, ranks_each: 2, all: all.to_vec() };
        recorder.set_processes(processes);
        let (rank, label) = (2 * own + 1, recorder.label("main"));
        let slice = Event::TaskSlice { starts: true, rank, task: 1, label, began_ns: 10 };
        recorder.stream(all[own as usize].workers - 1).record(20, slice);
        let files = recorder.write_paraver(folder.path(), "run", &info(6, 9, 30)).unwrap();
        clean(&files.prv);
        files
    };
    let pieces = [0, 1, 2].map(of);
    let merged =
        merge(&pieces.each_ref().map(|piece| &piece.prv), folder.path().join("run.prv")).unwrap();
    clean(&merged.prv);
    let text = fs::read_to_string(&merged.prv).unwrap();
    assert!(text.contains("_ns:2(1,5):1:6(2:2,2:2,1:1,1:1,3:2,3:2)\n"), "{text}");
    // The last worker of each process, and the second of its ranks.
    for line in ["1:3:1:2:2:10:20:1", "1:1:1:4:1:10:20:1", "1:6:1:6:3:10:20:1"] {
        assert!(text.lines().any(|of_trace| of_trace == line), "{line}: {text}");
    }
    let rows = fs::read_to_string(merged.row).unwrap();
    let cpus = "p1 worker 0\np0 worker 0\np0 worker 1\np2 worker 0\np2 worker 1\np2 worker 2\n";
    assert!(rows.starts_with(&format!("LEVEL CPU SIZE 6\n{cpus}")), "{rows}");
    assert!(rows.contains("\nLEVEL NODE SIZE 2\nnode 0\nnode 1\n"), "{rows}");
}

#[test]
fn a_rank_of_another_process_is_an_error() {
    let folder = TempDir::new().unwrap();
    let recorder = of_process(1);
    let label = recorder.label("main");
    let slice = Event::TaskSlice { starts: true, rank: 0, task: 1, label, began_ns: 1 };
    recorder.stream(0).record(2, slice);
    let error = recorder.write_paraver(folder.path(), "run", &info(2, 1, 5)).unwrap_err();
    let text = "worker 0 recorded rank 0 at 2 ns, which is in another process";
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_killed_process_leaves_its_piece() {
    let folder = TempDir::new().unwrap();
    let spill = folder.path().join("run.rank-1.spill");
    let limits = Limits {
        records: 1_000,
        keep: Keep::First,
        extent: Extent::Whole,
        edges: false,
        control: false,
    };
    let recorder = Recorder::spilling(limits, &spill, &info(2, 1, 0)).unwrap();
    let all = vec![RunProcess { machine: 0, workers: 1 }; 2];
    recorder.set_processes(RunProcesses { own: 1, ranks_each: 1, all });
    recorder.note_clock(ClockReading { here_ns: 7, there_ns: 9, error_ns: 3 });
    let first = of_process(0);
    let end_ns =
        record([&first, &recorder], [0, 0], &[(1, 2, 3, false), (1, 2, 3, true)], |_, time| time);
    recorder.record_count();
    let recovered = recover(&spill, folder.path(), "run.rank-1").unwrap();
    clean(&recovered.files.prv);
    let piece = first.write_paraver(folder.path(), "run", &info(2, 1, end_ns)).unwrap().prv;
    let pieces = [piece, recovered.files.prv];
    let merged = merge(&pieces, folder.path().join("run.prv")).unwrap();
    assert_eq!(contents(&merged.prv).0.len(), 4);
    assert!(fs::read_to_string(merged.prv).unwrap().contains("corrected, within 3 ns"));
}
