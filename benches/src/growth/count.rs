//! Instruction counts in place of time: every requested row on one worker, at two sizes.

use super::plan::Plan;
use super::row::Row;
use super::rows;
use crate::callgrind::Counts;
use crate::error::Error;
use crate::print_line::print_line;

/// Counts instructions per unit for all rows whose names begin with `only`, each at its base and at
/// the largest size that is counted.
///
/// **Errors**: valgrind not installed; those of the rows.
pub(super) fn count(only: &str) -> Result<Vec<(&'static Row, [f64; 2])>, Error> {
    let counts = Counts::of(&["growth-counted", only])?;
    let totals = (0..counts.len()).map(|number| counts.total(number));
    let totals = totals.collect::<Result<Vec<_>, Error>>()?;
    let (pairs, _) = totals.as_chunks();
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
