//! What a run prints and writes down.

use std::io::{self, Write};

use serde::Serialize;
use talpf_apps::jacobi::{Problem, Solution, Variant};

/// The result of a run, in the order of its lines.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    app: &'static str,
    variant: &'static str,
    ranks: usize,
    workers: usize,
    rows: usize,
    cols: usize,
    block: usize,
    steps: usize,
    seconds: f64,
    mupdates_per_s: f64,
    checksum: f64,
    /// Whether the result equals the serial one; `None` when nobody asked.
    verified: Option<bool>,
}

impl Report {
    pub(super) fn new(
        variant: Variant,
        problem: &Problem,
        solution: &Solution,
        verified: Option<bool>,
    ) -> Self {
        // A run of one cell can end within one tick of the clock.
        let seconds = solution.seconds.max(1e-9);
        Self {
            app: "jacobi",
            variant: variant.name(),
            ranks: solution.machine.ranks(),
            workers: solution.machine.workers(),
            rows: problem.rows(),
            cols: problem.cols(),
            block: problem.block(),
            steps: problem.steps(),
            seconds,
            mupdates_per_s: problem.updates() / seconds / 1e6,
            checksum: solution.matrix.sum(),
            verified,
        }
    }

    /// What was run, for the comments of a trace.
    pub(super) fn parameters(&self) -> Vec<String> {
        vec![
            format!("{} {}", self.app, self.variant),
            format!("{} ranks, {} workers", self.ranks, self.workers),
            format!("{} rows, {} columns", self.rows, self.cols),
            format!("block {}, {} steps", self.block, self.steps),
        ]
    }

    /// One line a value; `hash` is shown beside the checksum.
    pub(super) fn lines(&self, hash: u64) -> String {
        let verified = match self.verified {
            None => "not asked for (--check)",
            Some(true) => "yes, every bit equals serial",
            Some(false) => "NO",
        };
        let lines = [
            ("variant", self.variant.to_owned()),
            ("ranks", self.ranks.to_string()),
            ("workers", self.workers.to_string()),
            ("rows", self.rows.to_string()),
            ("cols", self.cols.to_string()),
            ("block", self.block.to_string()),
            ("steps", self.steps.to_string()),
            ("time", format!("{:.6} s", self.seconds)),
            ("rate", format!("{:.1} Mupdates/s", self.mupdates_per_s)),
            ("checksum", format!("{} (bits {hash:016x})", self.checksum)),
            ("verified", verified.to_owned()),
        ];
        lines.iter().map(|(name, value)| format!("{name:<9} {value}\n")).collect()
    }

    /// All values as one JSON object.
    pub(super) fn write_json(&self, mut out: impl Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut out, self)?;
        writeln!(out)
    }
}
