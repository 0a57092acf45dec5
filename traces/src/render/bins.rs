//! Time of each value in each cell of a picture.

use std::collections::BTreeMap;
use std::ops::Range;

/// Cells of rows and columns; each column has an equal part of the time shown.
pub(super) struct Bins {
    shown: Range<u64>,
    columns: usize,
    /// Part of the width of each cell that a value has, row by row.
    cells: Vec<Vec<(i64, f64)>>,
    /// Nanoseconds of each value in all cells.
    totals: BTreeMap<i64, u64>,
}

/// Neighbouring cells of a row with the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) row: usize,
    pub(crate) column: usize,
    pub(crate) length: usize,
    pub(crate) value: i64,
}

impl Bins {
    pub(super) fn new(rows: usize, columns: usize, shown: Range<u64>) -> Self {
        Self { shown, columns, cells: vec![Vec::new(); rows * columns], totals: BTreeMap::new() }
    }

    /// Returns the nanoseconds of each value in all cells.
    pub(super) fn totals(&self) -> &BTreeMap<i64, u64> {
        &self.totals
    }

    /// Adds the part of `begin..end` that is shown.
    pub(super) fn add(&mut self, row: usize, value: i64, begin: u64, end: u64) {
        let shown = end.min(self.shown.end).saturating_sub(begin.max(self.shown.start));
        if shown > 0 {
            let total = self.totals.entry(value).or_default();
            *total = total.saturating_add(shown);
        }
        for (column, part) in columns_of(&self.shown, self.columns, begin, end) {
            let cell = &mut self.cells[row * self.columns + column];
            match cell.iter_mut().find(|(of, _)| *of == value) {
                Some((_, sum)) => *sum += part,
                None => cell.push((value, part)),
            }
        }
    }

    /// Returns the value that each cell shows longest, as runs of equal neighbours.
    pub(super) fn runs(&self) -> Vec<Run> {
        let values = self.cells.iter().enumerate().filter_map(|(index, cell)| {
            let (value, _) = cell.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
            Some((index, *value))
        });
        runs_of(values, self.columns, |value| value)
    }
}

/// Returns the values of cells, given by their index and value, as runs of neighbours that are equal
/// after `key`; the value of a run is that of its first cell.
pub(super) fn runs_of<C: PartialEq>(
    values: impl Iterator<Item = (usize, i64)>,
    columns: usize,
    key: impl Fn(i64) -> C,
) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (index, value) in values {
        let (row, column) = (index / columns, index % columns);
        match runs.last_mut() {
            Some(run)
                if run.row == row
                    && run.column + run.length == column
                    && key(run.value) == key(value) =>
            {
                run.length += 1;
            }
            _ => runs.push(Run { row, column, length: 1, value }),
        }
    }
    runs
}

/// Returns the columns that `begin..end` covers, and which part of each.
pub(super) fn columns_of(
    shown: &Range<u64>,
    columns: usize,
    begin: u64,
    end: u64,
) -> impl Iterator<Item = (usize, f64)> + use<> {
    let length = (shown.end - shown.start) as f64;
    let (begin, end) = (begin.clamp(shown.start, shown.end), end.clamp(shown.start, shown.end));
    let position = |time: u64| (time - shown.start) as f64 / length * columns as f64;
    let (begin, end) = (position(begin), position(end));
    let last = if begin < end { (end.ceil() as usize).min(columns) } else { 0 };
    (begin as usize..last)
        .map(move |column| (column, end.min(column as f64 + 1.0) - begin.max(column as f64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_shows_what_fills_most_of_it() {
        let mut bins = Bins::new(2, 4, 100..140);
        bins.add(0, 1, 0, 114);
        bins.add(0, 2, 114, 200);
        bins.add(1, 7, 125, 126);
        let run = |row, column, length, value| Run { row, column, length, value };
        assert_eq!(bins.runs(), [run(0, 0, 1, 1), run(0, 1, 3, 2), run(1, 2, 1, 7)]);
        assert_eq!(bins.totals(), &BTreeMap::from([(1, 14), (2, 26), (7, 1)]));
    }

    #[test]
    fn more_columns_than_nanoseconds_are_filled_too() {
        let mut bins = Bins::new(1, 10, 0..3);
        bins.add(0, 1, 0, 1);
        bins.add(0, 2, 1, 3);
        let lengths: Vec<usize> = bins.runs().iter().map(|run| run.length).collect();
        assert_eq!(lengths.iter().sum::<usize>(), 10);
    }

    #[test]
    fn a_value_that_is_always_shown_fills_all_cells() {
        let mut bins = Bins::new(1, 7, 3..1003);
        bins.add(0, 5, 0, 2_000);
        let sum: f64 = bins.cells.iter().flatten().map(|(_, part)| part).sum();
        assert!((sum - 7.0).abs() < 1e-9, "{sum}");
    }
}
