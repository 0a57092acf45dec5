//! Summary of a trace: where the time of the workers went, and what it was spent for.
//!
//! A single pass over the records, and memory that grows with ranks (at most 1 MiB each, and as much for
//! each sync mode), task types and pairs of ranks that exchange messages, but not with the trace; a trace with edges of the graph also needs memory for each
//! task and edge. [`Summary::EXPLANATION`] defines each figure.

mod critical_path;
mod distribution;
mod interval_union;
mod text;
mod totals;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::error::Result;
use crate::paraver::Reader;
use critical_path::PathSearch;
use totals::Totals;

pub use critical_path::{CriticalPath, PathShare};
pub use distribution::Distribution;

/// Summary of a trace. Its text is a page of tables; it serializes with the names of its fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Length of the trace.
    pub duration_ns: u64,
    /// Number of workers: the cpus of the trace with a state, or the rows where it has no cpus.
    pub workers: u64,
    /// Length of the timed part of the program, from its first begin to its last end; 0 if none is marked.
    pub timed_ns: u64,
    /// Efficiency of all workers.
    pub efficiency: Efficiency,
    /// Name of the lower factor of the efficiency, by which most is lost; empty if none is.
    pub limited_by: &'static str,
    /// Ranks by number.
    pub ranks: Vec<RankSummary>,
    /// Task types by name.
    pub tasks: BTreeMap<String, TaskSummary>,
    /// Times that rows were in a state without an interruption, by its label; Not created is left out.
    pub states: BTreeMap<String, Distribution>,
    /// Costs of syncs by mode, one for each round that a rank has ended. As rounds of a rank may overlap,
    /// [`total_ns`](Distribution::total_ns) is the time in which at least one of the mode was awaited, summed
    /// over the ranks, and not the sum of the costs.
    pub syncs: BTreeMap<String, Distribution>,
    /// Messages between ranks.
    pub messages: MessageSummary,
    /// Longest chain of dependent slices; `None` if the trace has no edges of the graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critical_path: Option<CriticalPath>,
    /// Profile and cores of the machine that the run simulated; `None` if its times are those of a real one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulation: Option<String>,
    /// Comments of the trace that say what it lacks.
    pub lost: Vec<String>,
}

/// Factors of the efficiency of a run, after the POP methodology.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Efficiency {
    /// Share of the workers' time inside tasks: the product of the other two.
    pub parallel: f64,
    /// Time of a worker inside tasks, on average, over that of the worker with most.
    pub load_balance: f64,
    /// Time inside tasks of the worker with most, over the length of the trace.
    pub communication: f64,
}

impl Efficiency {
    /// Returns the name of the lower factor; nothing if neither is below 1.
    pub fn lower_factor(&self) -> &'static str {
        match (self.load_balance, self.communication) {
            (balance, communication) if balance.min(communication) >= 1.0 => "",
            (balance, communication) if balance < communication => "load balance",
            _ => "communication efficiency",
        }
    }
}

/// Time and work of a rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RankSummary {
    /// Nanoseconds in each state, by its label, over all rows of the rank.
    pub states_ns: BTreeMap<String, u64>,
    /// Nanoseconds without a task by their cause, over all rows of the rank; they are part of the
    /// times in states.
    pub idle_ns: BTreeMap<String, u64>,
    /// Tasks that have begun.
    pub tasks: u64,
    /// Rounds that have ended.
    pub rounds: u64,
    /// Cost of their syncs together: time in which at least one of them was awaited, once however many overlap,
    /// so that it never exceeds the length of the trace.
    pub sync_ns: u64,
    /// Bytes that have left the rank.
    pub bytes_sent: u64,
    /// Bytes that have arrived at the rank.
    pub bytes_received: u64,
}

/// Tasks of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TaskSummary {
    /// Tasks that have begun.
    pub tasks: u64,
    /// Durations of the slices in which they ran: a task that helps others, or is suspended, has
    /// several.
    pub slices: Distribution,
}

/// Messages between ranks. Those of data alone count, except where control messages are named.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MessageSummary {
    /// Number of messages of each kind that have arrived.
    pub kinds: BTreeMap<String, u64>,
    /// Number of control messages of each kind, in a trace that has them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub control: BTreeMap<String, u64>,
    /// Bytes of all messages.
    pub bytes: u64,
    /// Durations from where the data left to where it had arrived.
    pub latency: Distribution,
    /// Pairs of ranks that exchange messages, by sender and receiver.
    pub pairs: Vec<PairSummary>,
}

/// Messages from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PairSummary {
    /// Rank that sends.
    pub from: u32,
    /// Rank that receives.
    pub to: u32,
    /// Number of messages.
    pub messages: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl Summary {
    /// Definition of each figure, a line each.
    pub const EXPLANATION: &str = "\
parallel efficiency       Running time of all workers / (workers x length of the trace); with
                          slow ranks, a rank and its share of the workers stand for a worker, and
                          the time in which its slow cores compute is added
load balance              average Running time of a worker / that of the worker with most
communication efficiency  Running time of the worker with most / length of the trace
most is lost by           the lower one of the two factors
timed part                from its first begin to its last end, of all ranks
states of a rank          time of its rows in each state; Not created is left out
idle because              time of the rank's workers without a task, by its cause, as a share of
                          their time: supply, nothing ready and nothing awaited; communication,
                          nothing ready and operations posted, receives or arrivals awaited;
                          throttle, the program waits for its own tasks; not for this worker,
                          tasks of the rank were ready at other workers; end, its last task has ended;
                          slow core, a core of --slow-rank computes in the worker's place
tasks                     bodies that have begun
slices                    times a body ran without an interruption; one that helps others or is
                          suspended runs in several
total, median, p99        sum, half and 99 of 100 of the durations, the latter two within 1 %;
                          JSON has the quartiles, too, and all of it for each state
cost of a sync            from where the end of the round was asked for and the rank's own
                          operations were posted, to the end of the round; its median and p99
                          are those of single rounds
total cost of syncs       time in which at least one sync of the rank (of the mode, in the table
                          of modes, where it is summed over the ranks) was awaited: what lies in
                          the costs of several rounds counts once, so that syncs cost a rank at
                          most the length of the trace
latency of a message      from where the data left (physical send) to where it had arrived
                          (physical receive)
control messages          messages of syncs themselves, by their kind, in none of the other figures;
                          only in traces with --trace-control
critical path             longest chain of slices, by the sum of their times, in which each task
                          was made ready by the one before: by its last dependency, or as it was
                          spawned or woken; only in traces with --trace-edges. If a task makes
                          another ready after its last slice, or goes on, the last message whose
                          receive at its rank is complete (logical receive) and whose data came
                          after that slice belongs to the chain where that makes it longer: from
                          the call of its send to its physical receive, behind the task that sent
it shortens most          what has most of that time. Nothing beside the path shortens a run that
                          is as long as its path; one that is much longer lacks workers, or waits
                          for what has no edge
span                      from the begin of the path's first slice to the end of its last one
";

    /// Summarizes the trace at `prv`, which gzip may have compressed.
    ///
    /// **Errors**: those of the file, and [`BadRecord`](crate::Error::BadRecord) at the first line
    /// that Paraver would refuse or misread.
    pub fn of(prv: impl AsRef<Path>) -> Result<Self> {
        let mut reader = Reader::open(prv)?;
        let mut totals = Totals::new(&reader);
        let mut path = PathSearch::new(&reader);
        let lost = reader.read(|record| {
            path.record(&record);
            totals.record(record);
        })?;
        let critical_path = path.finish(&reader);
        Ok(Summary { critical_path, ..totals.finish(&reader, lost) })
    }
}
