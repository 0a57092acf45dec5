//! Mean and largest number in each cell of a picture.

use std::ops::Range;

use super::bins::{Run, columns_of, runs_of};

/// Cells of rows and columns; each column has an equal part of the time shown.
pub(super) struct Levels {
    shown: Range<u64>,
    columns: usize,
    cells: Vec<Cell>,
}

#[derive(Clone, Copy, Default)]
struct Cell {
    /// Part of the width that has values.
    part: f64,
    /// Integral of the values over the width.
    sum: f64,
    most: i64,
}

/// Column of a bar: mean over its width, and largest value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bar {
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) mean: f64,
    pub(super) most: i64,
}

impl Levels {
    pub(super) fn new(rows: usize, columns: usize, shown: Range<u64>) -> Self {
        Self { shown, columns, cells: vec![Cell::default(); rows * columns] }
    }

    /// Adds the part of `begin..end` that is shown.
    pub(super) fn add(&mut self, row: usize, value: i64, begin: u64, end: u64) {
        for (column, part) in columns_of(&self.shown, self.columns, begin, end) {
            let cell = &mut self.cells[row * self.columns + column];
            cell.part += part;
            cell.sum += part * value as f64;
            cell.most = if cell.part == part { value } else { cell.most.max(value) };
        }
    }

    /// Returns the mean of what each cell shows, as runs of neighbours that are equal after `colour`.
    pub(super) fn runs<C: PartialEq>(&self, colour: impl Fn(i64) -> C) -> Vec<Run> {
        let values = self.filled().map(|(index, cell)| (index, cell.mean()));
        runs_of(values, self.columns, colour)
    }

    /// Returns the columns that have values; their mean counts the rest of the width as 0.
    pub(super) fn bars(&self) -> impl Iterator<Item = Bar> {
        self.filled().map(|(index, cell)| Bar {
            row: index / self.columns,
            column: index % self.columns,
            mean: cell.sum,
            most: cell.most,
        })
    }

    /// Returns the least and the largest mean of all cells.
    pub(super) fn span(&self) -> (i64, i64) {
        let means = || self.filled().map(|(_, cell)| cell.mean());
        (means().min().unwrap_or(0), means().max().unwrap_or(0))
    }

    fn filled(&self) -> impl Iterator<Item = (usize, &Cell)> {
        self.cells.iter().enumerate().filter(|(_, cell)| cell.part > 0.0)
    }
}

impl Cell {
    fn mean(&self) -> i64 {
        (self.sum / self.part).round() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_a_mean_and_a_largest_value() {
        let mut levels = Levels::new(1, 2, 0..20);
        levels.add(0, 4, 0, 5);
        levels.add(0, 2, 5, 15);
        let bar = |column, mean, most| Bar { row: 0, column, mean, most };
        assert_eq!(levels.bars().collect::<Vec<_>>(), [bar(0, 3.0, 4), bar(1, 1.0, 2)]);
        assert_eq!(levels.span(), (2, 3));
        assert_eq!(levels.runs(|_| ()), [Run { row: 0, column: 0, length: 2, value: 3 }]);
    }
}
