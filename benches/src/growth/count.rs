//! Steps instead of time: instructions, which callgrind counts in a process of its own.
//!
//! The process measures every row that is asked for on one worker, at two sizes, and prints the
//! units of each. Callgrind leaves a file for each of them, in the same order.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::plan::Plan;
use super::row::Row;
use super::{marker, rows};
use crate::error::Error;
use crate::peer;
use crate::say::say;

/// The time after which the process is ended.
const LIMIT: Duration = Duration::from_secs(600);

/// Instructions a unit of all rows whose names begin with `only`: a row's at its base and at the
/// largest size that is counted.
///
/// **Errors**: valgrind is not installed; whatever the rows refuse.
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

/// Runs in the process that is counted: prints the units of each measurement.
///
/// **Errors**: whatever the rows refuse.
pub fn measure(only: &str) -> Result<(), Error> {
    for row in counted_rows(only) {
        for size in sizes(row) {
            for units in (row.sample)(Plan::Counts, size)? {
                say(format_args!("{} {units}", row.name));
            }
        }
    }
    Ok(())
}

/// The sizes at which steps of a row are counted.
pub(super) fn sizes(row: &Row) -> [usize; 2] {
    let base = row.base();
    [base, row.counted.unwrap_or(base)]
}

fn counted_rows(only: &str) -> impl Iterator<Item = &'static Row> {
    rows().filter(move |row| row.counted.is_some() && row.name.starts_with(only))
}

/// The instructions in a file of callgrind.
fn total_of(path: &Path) -> Result<f64, Error> {
    let doing = "reading what callgrind counted";
    let text = fs::read_to_string(path).map_err(|reason| Error::System { doing, reason })?;
    let line = text.lines().find_map(|line| line.strip_prefix("totals: "));
    let command = "callgrind".to_owned();
    let missing = Error::Garbled { command, line: "no totals".to_owned() };
    line.and_then(|total| total.trim().parse().ok()).ok_or(missing)
}
