//! Dense matrices of `f64` in row order.

use std::hint::black_box;
use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2, s};
use talpf_primitives::prefer_huge_pages;

/// Matrix that owns its cells (`rows x cols`, row by row without gaps).
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    data: Vec<f64>,
    rows: usize,
    cols: usize,
}

/// First cell in which two matrices differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Row of the cell.
    pub row: usize,
    /// Column of the cell.
    pub col: usize,
    /// Value in the matrix that was compared.
    pub found: f64,
    /// Value in the matrix that it was compared with.
    pub expected: f64,
}

impl Matrix {
    /// Creates a matrix of zeros whose pages are already touched, huge ones if it is large: the first sweep
    /// has no page faults, and the pages are on the NUMA node of the calling thread.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        const PAGE: usize = 4096 / size_of::<f64>();
        let mut data = vec![0.0; rows * cols];
        prefer_huge_pages(&data);
        for page in data.chunks_mut(PAGE) {
            // Opaque, or the compiler knows that the cell is zero already and drops the write.
            page[0] = black_box(0.0);
        }
        Self { data, rows, cols }
    }

    /// Creates a matrix of `cols` columns from its cells, row by row.
    ///
    /// **Panics** if the last row is not full.
    pub fn from_cells(data: Vec<f64>, cols: usize) -> Self {
        let rows = data.len().checked_div(cols).unwrap_or(0);
        assert_eq!(rows * cols, data.len(), "rows of {cols} cells");
        Self { data, rows, cols }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Returns all cells, row by row.
    pub fn cells(&self) -> &[f64] {
        &self.data
    }

    /// Returns all cells, row by row, without copying them.
    pub fn into_cells(self) -> Vec<f64> {
        self.data
    }

    /// Returns one row (`cols` cells).
    pub fn row(&self, row: usize) -> &[f64] {
        &self.data[row * self.cols..][..self.cols]
    }

    /// Returns one row (`cols` cells) for writing.
    pub fn row_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.data[row * self.cols..][..self.cols]
    }

    /// Returns a rectangle of the matrix.
    ///
    /// **Panics** if the rectangle does not lie inside.
    pub fn block(&self, rows: Range<usize>, cols: Range<usize>) -> ArrayView2<'_, f64> {
        self.view().slice_move(s![rows, cols])
    }

    /// Returns a rectangle of the matrix for writing.
    ///
    /// **Panics** if the rectangle does not lie inside.
    pub fn block_mut(&mut self, rows: Range<usize>, cols: Range<usize>) -> ArrayViewMut2<'_, f64> {
        self.view_mut().slice_move(s![rows, cols])
    }

    /// Returns the whole matrix.
    pub fn view(&self) -> ArrayView2<'_, f64> {
        ArrayView2::from_shape((self.rows, self.cols), &self.data).expect(AS_MANY_CELLS)
    }

    /// Returns the whole matrix for writing.
    pub fn view_mut(&mut self) -> ArrayViewMut2<'_, f64> {
        ArrayViewMut2::from_shape((self.rows, self.cols), &mut self.data).expect(AS_MANY_CELLS)
    }

    /// Returns all but the outermost cells, for writing.
    ///
    /// **Panics** if the matrix has fewer than two rows or columns.
    pub fn interior_mut(&mut self) -> ArrayViewMut2<'_, f64> {
        self.block_mut(1..self.rows - 1, 1..self.cols - 1)
    }

    /// Sums all cells: each row from left to right, then the rows from the top.
    pub fn sum(&self) -> f64 {
        self.data.chunks(self.cols.max(1)).map(|row| row.iter().sum::<f64>()).sum()
    }

    /// Hashes the exact bits of all cells in row order (FNV-1a over words of 64 bits).
    pub fn hash(&self) -> u64 {
        self.data.iter().fold(0xcbf2_9ce4_8422_2325, |hash, cell| {
            (hash ^ cell.to_bits()).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }

    /// Returns the first cell, in row order, whose bits differ from those of `expected`.
    ///
    /// **Panics** if the shapes differ.
    pub fn first_difference(&self, expected: &Self) -> Option<Difference> {
        assert_eq!((self.rows, self.cols), (expected.rows, expected.cols), "shapes differ");
        let mut pairs = self.data.iter().zip(&expected.data);
        let index = pairs.position(|(a, b)| a.to_bits() != b.to_bits())?;
        Some(Difference {
            row: index / self.cols,
            col: index % self.cols,
            found: self.data[index],
            expected: expected.data[index],
        })
    }
}

const AS_MANY_CELLS: &str = "a matrix has rows x cols cells";

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(rows: usize, cols: usize) -> Matrix {
        let mut matrix = Matrix::zeros(rows, cols);
        for row in 0..rows {
            for (col, cell) in matrix.row_mut(row).iter_mut().enumerate() {
                *cell = (10 * row + col) as f64;
            }
        }
        matrix
    }

    #[test]
    fn block_is_the_rectangle_asked_for() {
        let mut matrix = counting(4, 5);
        let block = matrix.block(1..3, 2..5);
        assert_eq!(block.dim(), (2, 3));
        assert_eq!(block.row(1).to_slice(), Some(&[22.0, 23.0, 24.0][..]));
        matrix.block_mut(3..4, 4..5)[(0, 0)] = -1.0;
        assert_eq!(matrix.row(3), [30.0, 31.0, 32.0, 33.0, -1.0]);
        assert_eq!(matrix.block(4..4, 0..5).nrows(), 0);
    }

    #[test]
    #[should_panic(expected = "Slice end 5 is past end of axis of length 4")]
    fn block_outside_the_matrix_panics() {
        counting(4, 5).block(1..5, 0..1);
    }

    #[test]
    fn first_difference_is_found_by_bits() {
        let matrix = counting(3, 4);
        assert_eq!(matrix.first_difference(&matrix.clone()), None);
        let mut other = matrix.clone();
        other.row_mut(0)[0] = -0.0;
        let at = matrix.first_difference(&other).expect("0.0 and -0.0 differ in their bits");
        assert_eq!((at.row, at.col), (0, 0));
        other.row_mut(0)[0] = 0.0;
        other.row_mut(2)[1] = 21.5;
        let at = matrix.first_difference(&other);
        assert_eq!(at, Some(Difference { row: 2, col: 1, found: 21.0, expected: 21.5 }));
        assert_ne!(matrix.hash(), other.hash());
    }

    #[test]
    fn sum_counts_every_cell_once() {
        assert_eq!(counting(3, 4).sum(), 138.0);
    }
}
