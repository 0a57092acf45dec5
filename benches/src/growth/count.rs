//! Instruction counts in place of time, from callgrind in a process of its own.
//!
//! The process measures every requested row on one worker, at two sizes, and prints the number of
//! units of each measurement. Callgrind leaves one file per measurement, in the same order.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::plan::Plan;
use super::row::Row;
use super::{marker, rows};
use crate::error::Error;
use crate::peer;
use crate::print_line::print_line;

/// Time limit of the process.
const LIMIT: Duration = Duration::from_secs(600);

/// Counts instructions per unit for all rows whose names begin with `only`, each at its base and at
/// the largest size that is counted.
///
/// **Errors**: valgrind not installed; those of the rows.
pub(super) fn count(only: &str) -> Result<Vec<(&'static Row, [f64; 2])>, Error> {
    let refused = |reason| Error::System { doing: "counting instructions", reason };
    let folder = tempfile::tempdir().map_err(refused)?;
    let out = folder.path().join("out");
    let mut command = peer::limited("valgrind", LIMIT);
    command.args(["--tool=callgrind", "--quiet"]).args(marker::OPTIONS);
    command.arg(format!("--callgrind-out-file={}", out.display()));
    command.arg(std::env::current_exe().map_err(refused)?).args(["growth-counted", only]);
    let output = peer::run(&mut command)?;
    let mut counts = Vec::new();
    for (number, (_, units)) in output.values::<f64>()?.into_iter().enumerate() {
        counts.push(total_of(&out.with_extension((number + 1).to_string()))? / units);
    }
    let (pairs, _) = counts.as_chunks();
    Ok(counted_rows(only).zip(pairs.iter().copied()).collect())
}

/// Measures the rows inside the counted process, and prints the units of each measurement.
///
/// **Errors**: those of the rows.
pub fn measure(only: &str) -> Result<(), Error> {
    for row in counted_rows(only) {
        for size in sizes(row) {
            for units in row.measure(Plan::Counts, size)? {
                print_line(format_args!("{} {units}", row.name));
            }
        }
    }
    Ok(())
}

/// Returns the two sizes at which instructions of a row are counted.
pub(super) fn sizes(row: &Row) -> [usize; 2] {
    let base = row.base();
    [base, row.counted.unwrap_or(base)]
}

fn counted_rows(only: &str) -> impl Iterator<Item = &'static Row> {
    rows().filter(move |row| row.counted.is_some() && row.name.starts_with(only))
}

/// Returns the total number of instructions in an output file of callgrind.
fn total_of(path: &Path) -> Result<f64, Error> {
    let doing = "reading the output of callgrind";
    let text = fs::read_to_string(path).map_err(|reason| Error::System { doing, reason })?;
    let line = text.lines().find_map(|line| line.strip_prefix("totals: "));
    let command = "callgrind".to_owned();
    let missing = Error::Garbled { command, line: "no totals".to_owned() };
    line.and_then(|total| total.trim().parse().ok()).ok_or(missing)
}
