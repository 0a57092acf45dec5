//! Options of what a trace keeps.

use std::ops::Range;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use talpf_apps::run::{Machine, Variant};
use talpf_apps::{Error, memory};
use talpf_traces::{Extent, Keep, Limits, Recorder};

use super::time::time;

/// Largest default of `--trace-limit`, and the part of the memory that is less.
const MOST_BYTES: u64 = 1 << 30;
const PART_OF_MEMORY: u64 = 10;

#[derive(Args, Clone, Debug, Default)]
pub(super) struct TraceOptions {
    /// Write a Paraver trace to this folder: <application>.prv, .pcf and .row; of several processes each
    /// writes <application>.rank-N.prv, and the first one joins them
    #[arg(long, value_name = "DIR")]
    pub(super) trace: Option<PathBuf>,

    /// Also write a page to the folder of the trace, report.html: summary, and timelines that zoom
    #[arg(long, requires = "trace")]
    pub(super) report: bool,

    /// Memory for the records of all workers of a process, as 200M or 2G [default: a tenth of what is
    /// available for all processes, 1G at most]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "trace")]
    trace_limit: Option<u64>,

    /// Records to keep where there are more
    #[arg(long, value_enum, default_value_t, requires = "trace")]
    trace_keep: Kept,

    /// Write the records to DIR/<application>.spill during the run; a run that is killed leaves them there
    /// for `talpf trace recover DIR`, and no more of them are in memory than --trace-limit says
    #[arg(long, requires = "trace", conflicts_with = "trace_keep")]
    pub(super) trace_spill: bool,

    /// Keep edges of the task graph, too: which task made each task ready, for the critical path of
    /// `talpf trace summary`; a record more for each task
    #[arg(long, requires = "trace")]
    trace_edges: bool,

    /// Keep control messages of syncs, too: counts, steps of exchanges and of barriers, and acknowledgements,
    /// as lines of their own kind, apart from the data; two records more for each
    #[arg(long, requires = "trace")]
    trace_control: bool,

    /// Keep only what is between two times of the run, as 2s..4s, 500ms.. or ..1s
    #[arg(long, value_name = "FROM..TO", value_parser = window, requires = "trace")]
    trace_window: Option<Range<u64>>,

    /// Keep only some supersteps of lane 0, as 10..20, which has the last one not
    #[arg(long, value_name = "FROM..TO", value_parser = steps, requires = "trace")]
    #[arg(conflicts_with = "trace_window")]
    trace_steps: Option<Range<u64>>,
}

/// Records to keep where there are more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Kept {
    /// The first ones
    #[default]
    First,
    /// The last ones
    Last,
}

impl TraceOptions {
    /// Returns the limits of what the recorder of a run keeps.
    ///
    /// **Errors**: supersteps, or control messages of syncs, of a variant without lanes.
    pub(super) fn limits(&self, variant: Variant, machine: &Machine) -> Result<Limits, Error> {
        let usual = || memory::available().map_or(MOST_BYTES, |bytes| bytes / PART_OF_MEMORY);
        // As if all processes were on this machine, of which nothing is known here.
        let each = || usual() / machine.processes() as u64;
        let bytes = self.trace_limit.unwrap_or_else(|| each().min(MOST_BYTES));
        let streams = match machine.simulation() {
            Some(simulation) => machine.ranks() as u64 * u64::from(simulation.cores),
            None => machine.workers() as u64,
        };
        let records = bytes / Recorder::RECORD_BYTES as u64 / streams;
        let keep = match self.trace_keep {
            Kept::First => Keep::First,
            Kept::Last => Keep::Last,
        };
        let options = [
            ("--trace-steps", self.trace_steps.is_some()),
            ("--trace-control", self.trace_control),
        ];
        let has_lanes = variant.has_ranks() && !variant.is_two_sided();
        if let Some((option, _)) = options.into_iter().find(|(_, is_given)| *is_given && !has_lanes)
        {
            return Err(Error::NotTogether { option, with: variant.name() });
        }
        let extent = match (&self.trace_window, &self.trace_steps) {
            (None, None) => Extent::Whole,
            (Some(times), _) => Extent::Times(times.clone()),
            (None, Some(rounds)) => {
                Extent::Rounds { rounds: rounds.clone(), ranks: machine.ranks_here().len() as u32 }
            }
        };
        let (edges, control) = (self.trace_edges, self.trace_control);
        Ok(Limits { records: records as usize, keep, extent, edges, control })
    }
}

/// Parses a number of bytes, with K, M or G behind it for powers of 1,024.
fn size(text: &str) -> Result<u64, String> {
    let number = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
    let shift = match &text[number.len()..] {
        "" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => return Err("expected a number of bytes, with K, M or G behind it".to_owned()),
    };
    let number: u64 = number.parse().map_err(|error| format!("{error}"))?;
    number.checked_mul(1 << shift).ok_or_else(|| "too many bytes".to_owned())
}

/// Parses `FROM..TO`, of which either may be left out.
pub(super) fn range(
    text: &str,
    bound: fn(&str) -> Result<u64, String>,
) -> Result<Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("expected FROM..TO")?;
    let from = if from.is_empty() { 0 } else { bound(from)? };
    let to = if to.is_empty() { u64::MAX } else { bound(to)? };
    if from < to { Ok(from..to) } else { Err("the range is empty".to_owned()) }
}

fn window(text: &str) -> Result<Range<u64>, String> {
    range(text, time)
}

fn steps(text: &str) -> Result<Range<u64>, String> {
    range(text, |number| number.parse().map_err(|error| format!("{error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_powers_of_1024() {
        let good =
            [("0", 0), ("12345", 12_345), ("200M", 200 << 20), ("2GiB", 2 << 30), ("1K", 1024)];
        for (text, bytes) in good {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for bad in ["", "M", "-1", "1.5G", "1T", "1 M", "99999999999G"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ranges_may_have_one_end() {
        assert_eq!(window("2s..4s"), Ok(2_000_000_000..4_000_000_000));
        assert_eq!(window("..1ms"), Ok(0..1_000_000));
        assert_eq!(window("5us.."), Ok(5_000..u64::MAX));
        assert_eq!(steps("10..20"), Ok(10..20));
        for bad in ["", "2s", "4s..2s", "2s..2s", "2..4", "a..b"] {
            assert!(window(bad).is_err(), "{bad}");
        }
        for bad in ["1s..2s", "3..3", "-1..2"] {
            assert!(steps(bad).is_err(), "{bad}");
        }
    }
}
