//! Metrics of a run from its trace.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use serde::Serialize;
use talpf_apps::Error;
use talpf_apps::run::Machine;
use talpf_traces::{Recorder, TraceInfo};

const TASK_TYPE: &str = "11";
const SYNC_ENDED: &str = "95000005";
const SYNC_OWN_WORK_DONE: &str = "95000007";

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
        let (ranks, workers) = (machine.ranks() as u32, machine.workers() as u32);
        let info = TraceInfo { ranks, workers, ..TraceInfo::default() };
        let files = recorder.write_paraver(folder.path(), "run", &info);
        let files = files.map_err(Error::WriteTrace)?;
        let labels = read(&files.pcf)?;
        Ok(Self::of_texts(&read(&files.prv)?, &types(&labels, kernels), machine.workers()))
    }

    /// Computes the metrics of the records `prv`, in which the task types `kernels` do the work.
    fn of_texts(prv: &str, kernels: &HashSet<&str>, workers: usize) -> Self {
        let mut metrics = Self::default();
        let mut kernel_since: HashMap<(&str, &str), u64> = HashMap::new();
        let mut syncs: HashMap<&str, Vec<(u64, u64)>> = HashMap::new();
        let (mut first, mut last, mut computed) = (u64::MAX, 0, 0);
        for line in prv.lines() {
            let fields: Vec<&str> = line.split(':').collect();
            match fields[..] {
                ["2", _, _, task, thread, time, ref pairs @ ..] => {
                    let (row, time) = ((task, thread), number(time));
                    for pair in pairs.chunks_exact(2) {
                        match *pair {
                            [TASK_TYPE, value] => {
                                if let Some(since) = kernel_since.remove(&row) {
                                    computed += time - since;
                                    last = last.max(time);
                                }
                                if kernels.contains(value) {
                                    kernel_since.insert(row, time);
                                    first = first.min(time);
                                }
                            }
                            [SYNC_ENDED, _] => metrics.rounds += 1,
                            [SYNC_OWN_WORK_DONE, cost] => {
                                let since = time.saturating_sub(number(cost));
                                syncs.entry(task).or_default().push((since, time));
                            }
                            _ => {}
                        }
                    }
                }
                ["3", .., bytes, _tag] => {
                    metrics.messages += 1;
                    metrics.bytes += number(bytes);
                }
                _ => {}
            }
        }
        let synced: u64 = syncs.into_values().map(covered).sum();
        metrics.sync_us = synced as f64 / 1e3 / metrics.rounds.max(1) as f64;
        let available = last.saturating_sub(first) as f64 * workers as f64;
        metrics.idle = if available > 0.0 { 1.0 - computed as f64 / available } else { 0.0 };
        metrics
    }
}

/// Returns the time that the intervals cover together.
fn covered(mut intervals: Vec<(u64, u64)>) -> u64 {
    intervals.sort_unstable();
    let mut reached = 0;
    let uncovered = intervals.into_iter().map(|(begin, end)| {
        let begin = begin.max(reached);
        reached = reached.max(end);
        end.saturating_sub(begin)
    });
    uncovered.sum()
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// Returns the numbers of the task types with these labels.
fn types<'a>(pcf: &'a str, labels: &[&str]) -> HashSet<&'a str> {
    let section = pcf.lines().skip_while(|line| !line.trim_end().ends_with("Task type")).skip(2);
    let values = section.take_while(|line| !line.is_empty());
    let values = values.filter_map(|line| line.split_once(char::is_whitespace));
    values.filter(|(_, label)| labels.contains(&label.trim())).map(|(value, _)| value).collect()
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_added_up() {
        let pcf =
            "0    11         Task type\nVALUES\n0    (none)\n3    sync\n5    pull\n\n5    put\n";
        let kernels = types(pcf, &["pull", "move"]);
        assert_eq!(kernels, HashSet::from(["5"]));
        let prv = "#Paraver\n2:1:1:1:1:100:10:7:11:5\n2:1:1:1:1:300:10:0:11:0\n\
                   2:2:1:2:2:200:10:8:11:3:95000001:7\n2:2:1:2:2:4200:95000005:1:95000007:4000\n\
                   2:0:1:2:1:4300:95000005:1:95000007:2100\n2:1:1:1:1:900:95000005:1:95000007:0\n\
                   2:2:1:2:2:500:10:9:11:5\n2:2:1:2:2:600:11:0\n\
                   1:1:1:1:1:0:100:0\n3:1:1:1:1:5:6:2:1:2:1:9:9:64:1\n3:1:1:1:1:5:6:2:1:2:1:9:9:8:2\n";
        let metrics = TraceMetrics::of_texts(prv, &kernels, 2);
        let expected =
            TraceMetrics { messages: 2, bytes: 72, rounds: 3, sync_us: 4.1 / 3.0, idle: 0.7 };
        assert_eq!(metrics, expected);
    }
}
