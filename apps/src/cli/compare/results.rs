//! Results of a comparison.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use talpf_apps::run::{OvershootSums, Variant};
use talpf_traces::counted;

use super::Scaling;
use super::trace_metrics::TraceMetrics;

/// Results of a whole comparison.
#[derive(Debug, Serialize)]
pub(super) struct Results {
    pub(super) app: &'static str,
    pub(super) scaling: Scaling,
    /// Number of timed runs of every point.
    pub(super) repeat: usize,
    /// Number of runs of every point with a trace, which are not timed.
    pub(super) traced: usize,
    /// Unit of all rates.
    pub(super) unit: &'static str,
    /// Problem of one rank.
    #[serde(serialize_with = "as_map")]
    pub(super) parameters: Vec<(&'static str, usize)>,
    /// Virtual machine of runs in virtual time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) simulated: Option<String>,
    /// Virtual cores of runs in dilated time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dilated: Option<String>,
    #[serde(serialize_with = "as_map")]
    pub(super) conditions: Vec<(&'static str, String)>,
    pub(super) points: Vec<Point>,
}

/// Variant, spawned or replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Method {
    #[serde(serialize_with = "by_name")]
    pub(super) variant: Variant,
    /// `true` if the graph is recorded once and replayed.
    pub(super) replay: bool,
}

impl Method {
    /// Returns the name in tables and plots.
    pub(super) fn name(self) -> String {
        format!("{}{}", self.variant.name(), if self.replay { " replayed" } else { "" })
    }
}

/// Results of one variant on one number of ranks.
#[derive(Debug, Serialize)]
pub(super) struct Point {
    #[serde(flatten)]
    pub(super) method: Method,
    pub(super) ranks: usize,
    pub(super) workers: usize,
    /// Time of every timed run, shortest first.
    pub(super) seconds: Vec<f64>,
    /// Rate of the median run.
    pub(super) rate: f64,
    /// Rate relative to the median rate of the first point: serial, or the first variant on the fewest
    /// ranks on virtual cores.
    pub(super) speedup: f64,
    /// Speed-up per usable core; on virtual cores, by how many times as many.
    pub(super) normalised: f64,
    /// Precision of all timed runs in dilated time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) overshoot: Option<OvershootSums>,
    /// Metrics of the runs with a trace.
    pub(super) traces: Vec<TraceMetrics>,
}

/// Median and extremes of a value that was measured several times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// Creates the spread of at least one value.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let last = values.len() - 1;
        Self { least: values[0], median: values[values.len() / 2], most: values[last] }
    }
}

impl Results {
    /// Returns the name of the point that others are compared with.
    pub(super) fn base(&self) -> String {
        let first = self.points.first();
        first.map_or_else(String::new, |first| match first.method.variant.has_ranks() {
            true => format!("{} on {}", first.method.name(), counted(first.ranks, "rank")),
            false => first.method.name(),
        })
    }
}

impl Point {
    /// Returns the spread of a value that is derived from the time of a run.
    pub(super) fn timed(&self, value: impl Fn(f64) -> f64) -> Spread {
        Spread::of(self.seconds.iter().map(|&seconds| value(seconds)))
    }

    /// Returns the spread of a value of the traces.
    pub(super) fn traced(&self, value: impl Fn(&TraceMetrics) -> f64) -> Spread {
        Spread::of(self.traces.iter().map(value))
    }

    /// Returns the numbers of messages and bytes, which are the same in every run.
    pub(super) fn traffic(&self) -> (u64, u64) {
        self.traces.last().map_or((0, 0), |trace| (trace.messages, trace.bytes))
    }

    pub(super) fn median(&self) -> f64 {
        self.seconds[self.seconds.len() / 2]
    }

    pub(super) fn least(&self) -> f64 {
        self.seconds[0]
    }

    pub(super) fn most(&self) -> f64 {
        self.seconds[self.seconds.len() - 1]
    }
}

fn as_map<T: Serialize, S: Serializer>(
    pairs: &[(&'static str, T)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    pairs
        .iter()
        .map(|(name, value)| (*name, value))
        .collect::<BTreeMap<_, _>>()
        .serialize(serializer)
}

fn by_name<S: Serializer>(variant: &Variant, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(variant.name())
}
