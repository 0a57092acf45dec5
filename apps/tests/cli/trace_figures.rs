//! Figures of a trace against those that the run itself has counted.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde_json::Value;
use talpf_traces::paraver::{EventKind, Reader, Record};
use talpf_traces::{RankSummary, State, Summary};

/// Largest difference between two readings of a clock, beside 2 %.
const MOST_NS: f64 = 100_000.0;

/// Sums over the records of a trace.
#[derive(Default)]
struct Shown {
    tasks: HashSet<i64>,
    /// Time of each row in any state.
    rows_ns: BTreeMap<usize, u64>,
    /// Time in each state but Not created: on cpus, and of all rows.
    on_cpus_ns: BTreeMap<u32, u64>,
    of_rows_ns: BTreeMap<u32, u64>,
    /// Idle time of each worker.
    idle_ns: BTreeMap<usize, u64>,
    /// Largest cost of a sync.
    sync_ns: u64,
}

fn shown(prv: &Path) -> (Shown, u64) {
    let mut reader = Reader::open(prv).unwrap();
    let rows = reader.ranks_of_rows().len();
    // Rows are named by application, rank and worker.
    let worker = |row: usize| {
        let name = reader.row_name(row);
        name.rsplit('.').next().and_then(|thread| thread.parse::<usize>().ok()).unwrap() - 1
    };
    let workers: Vec<usize> = (0..rows).map(worker).collect();
    let (mut shown, mut idle_since) = (Shown::default(), BTreeMap::new());
    reader
        .read(|record| match record {
            Record::State { row, cpu, begin_ns, end_ns, state } => {
                *shown.rows_ns.entry(row).or_default() += end_ns - begin_ns;
                if state != State::NotCreated.number() {
                    *shown.of_rows_ns.entry(state).or_default() += end_ns - begin_ns;
                    if cpu > 0 {
                        *shown.on_cpus_ns.entry(state).or_default() += end_ns - begin_ns;
                    }
                }
            }
            Record::Event { row, time_ns, values, .. } => {
                for &(kind, value) in values {
                    if kind == EventKind::TaskId.number() && value != 0 {
                        shown.tasks.insert(value);
                    } else if kind == EventKind::SyncOwnWorkDone.number() {
                        shown.sync_ns = shown.sync_ns.max(value as u64);
                    } else if kind == EventKind::IdleBecause.number() {
                        if let Some(since_ns) = idle_since.remove(&row) {
                            *shown.idle_ns.entry(workers[row]).or_default() += time_ns - since_ns;
                        }
                        if value != 0 {
                            idle_since.insert(row, time_ns);
                        }
                    }
                }
            }
            Record::Communication(_) => {}
        })
        .unwrap();
    assert!(idle_since.is_empty(), "an idle time has no end");
    (shown, reader.duration_ns())
}

/// Checks the trace of a run with tasks of `ranks` ranks against its metrics: tasks, idle times, and sums of
/// states, and costs of syncs.
#[track_caller]
pub(crate) fn assert_agree(prv: &Path, metrics: &Value, ranks: u64, run: &str) {
    let (shown, duration_ns) = shown(prv);
    // Each rank has a polling task, which is a state of its worker.
    let created = metrics["tasks_created"].as_u64().unwrap();
    assert_eq!(shown.tasks.len() as u64 + ranks, created, "{run}");

    for (worker, idle_s) in metrics["idle_s"].as_array().unwrap().iter().enumerate() {
        let counted = idle_s.as_f64().unwrap() * 1e9;
        let idle = shown.idle_ns.get(&worker).copied().unwrap_or_default() as f64;
        let most = MOST_NS.max(counted * 0.02);
        assert!((idle - counted).abs() <= most, "{run}: worker {worker} {idle} {counted}");
    }

    let whole = |(row, sum): (&usize, &u64)| assert_eq!(*sum, duration_ns, "{run}: row {row}");
    shown.rows_ns.iter().for_each(whole);
    assert_eq!(shown.on_cpus_ns, shown.of_rows_ns, "{run}");
    assert!(shown.sync_ns < duration_ns, "{run}: {} of {duration_ns}", shown.sync_ns);
    for (rank, RankSummary { sync_ns, .. }) in Summary::of(prv).unwrap().ranks.iter().enumerate() {
        assert!(*sync_ns < duration_ns, "{run}: rank {rank} {sync_ns} of {duration_ns}");
    }
}
