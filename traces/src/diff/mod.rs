//! Comparison of two traces: what changed in tasks, states and syncs, measured by the spread inside each.

mod text;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::error::Result;
use crate::summary::{Distribution, Summary};

/// Resolution of quantiles: those that differ by less than one part of this many may be equal.
const RESOLUTION: u64 = 50;

/// Differences between two traces. Its text is a page of tables; it serializes with the names of its fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Diff {
    /// Lengths of the first and of the second trace.
    pub duration_ns: [u64; 2],
    /// Slices of tasks by type.
    pub tasks: BTreeMap<String, Change>,
    /// Times that rows were in a state, by its label.
    pub states: BTreeMap<String, Change>,
    /// Costs of syncs by mode.
    pub syncs: BTreeMap<String, Change>,
    /// Comments of each trace that say what it lacks.
    pub lost: [Vec<String>; 2],
    /// Profile and cores of the machine that each run simulated; `None` if its times are those of a real one.
    pub simulation: [Option<String>; 2],
}

/// Durations of one kind in two traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// Durations in the first trace; none if it has no such kind.
    pub first: Distribution,
    /// Durations in the second trace.
    pub second: Distribution,
    /// Change of the median from the first trace to the second, in nanoseconds; a trace without such durations
    /// has a median of 0.
    pub median_change_ns: i64,
    /// Yardstick of the change: the larger distance between the first and the third quartile of a trace, at
    /// least 2 % of the larger median.
    pub spread_ns: u64,
    /// `true` if the change of the median exceeds the spread, or one trace alone has the kind.
    pub is_marked: bool,
}

impl Diff {
    /// Definition of each figure, a line each.
    pub const EXPLANATION: &str = "\
slices of a task type     times a body ran without an interruption
state                     times a row was in the state without an interruption, over all rows;
                          Not created is left out
cost of a sync            from where the end of the round was asked for and the rank's own
                          operations were posted, to the end of the round
count, total              number and sum of the durations, of the first trace and the second;
                          of costs of syncs, for each rank the time in which at least one sync
                          of the mode was awaited, summed over the ranks
median                    duration that half of them do not exceed, within 1 %
change                    median of the second trace - median of the first
spread                    distance between the first and the third quartile, of the trace where
                          it is larger; at least 2 % of the larger median
*                         the change exceeds the spread, or one trace alone has such durations
";

    /// Compares two traces, which gzip may have compressed, by the names of what they show.
    ///
    /// **Errors**: those of the files, and [`BadRecord`](crate::Error::BadRecord) at the first line
    /// that Paraver would refuse or misread.
    pub fn of(first: impl AsRef<Path>, second: impl AsRef<Path>) -> Result<Self> {
        Ok(Self::between(Summary::of(first)?, Summary::of(second)?))
    }

    /// Compares two summaries.
    pub fn between(first: Summary, second: Summary) -> Self {
        let slices = |summary: &Summary| -> BTreeMap<String, Distribution> {
            let tasks = summary.tasks.iter();
            tasks.map(|(name, tasks)| (name.clone(), tasks.slices)).collect()
        };
        Self {
            duration_ns: [first.duration_ns, second.duration_ns],
            tasks: changes(&slices(&first), &slices(&second)),
            states: changes(&first.states, &second.states),
            syncs: changes(&first.syncs, &second.syncs),
            simulation: [first.simulation, second.simulation],
            lost: [first.lost, second.lost],
        }
    }
}

impl Change {
    fn between(first: Distribution, second: Distribution) -> Self {
        let (before, after) = (first.median_ns, second.median_ns);
        let between_quartiles = |of: &Distribution| of.quartile3_ns.saturating_sub(of.quartile1_ns);
        let spread_ns = between_quartiles(&first)
            .max(between_quartiles(&second))
            .max(before.max(after) / RESOLUTION);
        let is_in_one = (first.count == 0) != (second.count == 0);
        let distance = after.abs_diff(before);
        let change = i64::try_from(distance).unwrap_or(i64::MAX);
        Self {
            first,
            second,
            median_change_ns: if after < before { -change } else { change },
            spread_ns,
            is_marked: is_in_one || distance > spread_ns,
        }
    }
}

/// Pairs the durations of each name.
fn changes(
    first: &BTreeMap<String, Distribution>,
    second: &BTreeMap<String, Distribution>,
) -> BTreeMap<String, Change> {
    let of =
        |map: &BTreeMap<String, Distribution>, name| map.get(name).copied().unwrap_or_default();
    let names = first.keys().chain(second.keys());
    names.map(|name| (name.clone(), Change::between(of(first, name), of(second, name)))).collect()
}
