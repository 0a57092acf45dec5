//! Metrics of a run from its trace.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde::Serialize;
use talpf_apps::Error;
use talpf_apps::run::Machine;
use talpf_traces::paraver::{EventKind, Reader, Record};
use talpf_traces::{RankSummary, Recorder, Summary, TraceInfo};

const TASK_TYPE: u32 = EventKind::TaskType.number();

/// Metrics of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct TraceMetrics {
    /// Number of messages between ranks.
    pub(super) messages: u64,
    /// Number of bytes in these messages.
    pub(super) bytes: u64,
    /// Number of rounds that ended, of all ranks and lanes together.
    pub(super) rounds: u64,
    /// Average time in which a rank had a sync under way and its own operations of the round
    /// done, per round; rounds that overlap count once. **Units**: microseconds.
    pub(super) sync_us: f64,
    /// Share of the workers' time without a kernel, from the first to the last kernel.
    pub(super) idle: f64,
}

impl TraceMetrics {
    /// Computes the metrics of a run on `machine`, in which tasks named `kernels` do the work.
    pub(super) fn new(
        recorder: &Recorder,
        machine: Machine,
        kernels: &[&str],
    ) -> Result<Self, Error> {
        let folder = tempfile::tempdir();
        let folder =
            folder.map_err(|source| Error::Write { path: std::env::temp_dir(), source })?;
        let (ranks, workers) = (machine.ranks() as u32, machine.workers_of_rank() as u32);
        let own_workers = machine.simulation().is_some();
        let info = TraceInfo { ranks, workers, own_workers, ..TraceInfo::default() };
        let files = recorder.write_paraver(folder.path(), "run", &info);
        let files = files.map_err(Error::WriteTrace)?;
        let workers = if own_workers { ranks * workers } else { workers };
        Self::of_trace(&files.prv, kernels, workers as usize).map_err(Error::ReadTrace)
    }

    /// Computes the metrics of the trace `prv`, in which the task types named `kernels` do the work.
    fn of_trace(prv: &Path, kernels: &[&str], workers: usize) -> Result<Self, talpf_traces::Error> {
        let mut reader = Reader::open(prv)?;
        let kernels: HashSet<i64> = reader
            .labelled_values(TASK_TYPE)
            .filter(|(_, label)| kernels.contains(label))
            .map(|(value, _)| value)
            .collect();
        let mut kernel_since: HashMap<usize, u64> = HashMap::new();
        let (mut first, mut last, mut computed) = (u64::MAX, 0, 0);
        reader.read(|record| {
            let Record::Event { row, time_ns, values, .. } = record else { return };
            for &(_, value) in values.iter().filter(|(kind, _)| *kind == TASK_TYPE) {
                if let Some(since) = kernel_since.remove(&row) {
                    computed += time_ns - since;
                    last = last.max(time_ns);
                }
                if kernels.contains(&value) {
                    kernel_since.insert(row, time_ns);
                    first = first.min(time_ns);
                }
            }
        })?;
        let available = last.saturating_sub(first) as f64 * workers as f64;
        let idle = if available > 0.0 { 1.0 - computed as f64 / available } else { 0.0 };

        let Summary { ranks, messages, .. } = Summary::of(prv)?;
        let sum = |of: fn(&RankSummary) -> u64| ranks.iter().map(of).sum::<u64>();
        let (rounds, sync_ns) = (sum(|rank| rank.rounds), sum(|rank| rank.sync_ns));
        Ok(Self {
            messages: messages.latency.count,
            bytes: messages.bytes,
            rounds,
            sync_us: sync_ns as f64 / 1e3 / rounds.max(1) as f64,
            idle,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_added_up() {
        let pcf = "EVENT_TYPE\n0    11         Task type\nVALUES\n3    sync\n5    pull\n6    put\n";
        let prv = "#Paraver (25/11/2026 at 20:00):4300_ns:1(2):1:2(1:1,2:1)\n\
                   1:1:1:1:1:0:100:0\n\
                   3:1:1:1:1:5:6:2:1:2:1:9:9:64:1\n3:1:1:1:1:5:6:2:1:2:1:9:9:8:2\n\
                   2:1:1:1:1:100:10:7:11:5\n2:2:1:2:2:200:10:8:11:3:95000001:7\n\
                   2:1:1:1:1:300:10:0:11:0\n2:2:1:2:2:500:10:9:11:5\n2:2:1:2:2:600:11:0\n\
                   2:1:1:1:1:900:95000005:1:95000007:0\n\
                   2:2:1:2:2:4200:95000005:1:95000007:4000\n\
                   2:0:1:2:1:4300:95000005:1:95000007:2100\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.prv");
        std::fs::write(&path, prv).unwrap();
        std::fs::write(path.with_extension("pcf"), pcf).unwrap();
        let metrics = TraceMetrics::of_trace(&path, &["pull", "move"], 2).unwrap();
        let expected =
            TraceMetrics { messages: 2, bytes: 72, rounds: 3, sync_us: 4.1 / 3.0, idle: 0.7 };
        assert_eq!(metrics, expected);
    }
}
