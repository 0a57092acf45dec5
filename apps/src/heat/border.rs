//! Fixed temperatures around a matrix.

use ndarray::{ArrayView1, ArrayViewMut2};

use super::Source;

/// Outermost cells of a matrix of `(rows + 2) x (cols + 2)`, which never change. Each holds the sum
/// of the temperatures that all sources cause there, in the order of the sources. Sums, not maxima,
/// since heat of overlapping sources adds up.
///
/// The whole border is computed once, in O(rows + cols); ranks and workers then [`apply`] it to
/// the part of the matrix that each of them owns.
///
/// [`apply`]: Border::apply
#[derive(Clone, Debug)]
pub struct Border {
    north: Vec<f64>,
    south: Vec<f64>,
    west: Vec<f64>,
    east: Vec<f64>,
}

impl Border {
    /// Computes the border of a matrix with `rows x cols` cells inside it.
    pub fn new(rows: usize, cols: usize, sources: &[Source]) -> Self {
        let at = |row: usize, col: usize| {
            let row = row as f64 / (rows + 1) as f64;
            let col = col as f64 / (cols + 1) as f64;
            sources.iter().map(|source| source.temperature_at(row, col)).sum::<f64>()
        };
        Self {
            north: (0..cols + 2).map(|col| at(0, col)).collect(),
            south: (0..cols + 2).map(|col| at(rows + 1, col)).collect(),
            west: (0..rows + 2).map(|row| at(row, 0)).collect(),
            east: (0..rows + 2).map(|row| at(row, cols + 1)).collect(),
        }
    }

    /// Writes the border cells that lie in `part`, the rectangle of the matrix that begins at cell
    /// (`row`, `col`). Other cells of `part` stay as they are.
    ///
    /// **Panics** if the rectangle does not lie inside the matrix.
    pub fn apply(&self, row: usize, col: usize, mut part: ArrayViewMut2<'_, f64>) {
        let (last_row, last_col) = (self.west.len() - 1, self.north.len() - 1);
        let cols = col..col + part.ncols();
        for local in 0..part.nrows() {
            let row = row + local;
            let mut cells = part.row_mut(local);
            if row == 0 {
                cells.assign(&ArrayView1::from(&self.north[cols.clone()]));
            } else if row == last_row {
                cells.assign(&ArrayView1::from(&self.south[cols.clone()]));
            } else {
                if cols.contains(&0) {
                    cells[0] = self.west[row];
                }
                if cols.contains(&last_col) {
                    cells[last_col - col] = self.east[row];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;

    fn sources() -> Vec<Source> {
        vec![
            Source { row: 0.0, col: 0.0, size: 1.0, temperature: 2.5 },
            Source { row: 0.0, col: 0.0, size: 0.5, temperature: -1.0 },
        ]
    }

    #[test]
    fn cone_falls_linearly_to_zero_at_its_size() {
        let source = Source { row: 0.0, col: 0.5, size: 0.5, temperature: 4.0 };
        assert_eq!(source.temperature_at(0.0, 0.5), 4.0);
        assert_eq!(source.temperature_at(0.0, 0.25), 2.0);
        assert_eq!(source.temperature_at(0.0, 0.0), 0.0);
        assert_eq!(source.temperature_at(1.0, 0.5), 0.0);
    }

    #[test]
    fn overlapping_sources_add_up_and_the_interior_is_untouched() {
        let mut matrix = Matrix::zeros(5, 6);
        Border::new(3, 4, &sources()).apply(0, 0, matrix.view_mut());
        assert_eq!(matrix.row(0)[0], 1.5);
        assert_eq!(matrix.row(1)[0], 2.5 * 0.75 - 0.5);
        assert_eq!(matrix.row(0)[5], 0.0);
        for row in 1..4 {
            assert_eq!(matrix.row(row)[1..5], [0.0; 4]);
        }
    }

    #[test]
    fn parts_together_are_the_whole() {
        let (rows, cols) = (7, 5);
        let border = Border::new(rows, cols, &sources());
        let mut whole = Matrix::zeros(rows + 2, cols + 2);
        border.apply(0, 0, whole.view_mut());
        for (height, width) in [(1, 1), (2, 3), (4, 7), (9, 2)] {
            let mut pieces = Matrix::zeros(rows + 2, cols + 2);
            for row in (0..rows + 2).step_by(height) {
                for col in (0..cols + 2).step_by(width) {
                    let (end, right) = ((row + height).min(rows + 2), (col + width).min(cols + 2));
                    border.apply(row, col, pieces.block_mut(row..end, col..right));
                }
            }
            assert_eq!(pieces, whole, "{height} x {width}");
        }
    }
}
