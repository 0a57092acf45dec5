//! Strided rectangles of cells: what a kernel works on.
//!
//! A view does not tell whether it is a whole matrix, a block of one, or memory that a task was
//! given access to.

/// A rectangle of `rows x cols` cells; each row starts `stride` cells after the one above.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    data: &'a [f64],
    stride: usize,
    rows: usize,
    cols: usize,
}

impl<'a> View<'a> {
    /// The rectangle that starts with the first cell of `data`.
    ///
    /// **Panics** when rows overlap or `data` is too short.
    pub fn new(data: &'a [f64], stride: usize, rows: usize, cols: usize) -> Self {
        check(data.len(), stride, rows, cols);
        Self {
            data,
            stride,
            rows,
            cols,
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// One row (`cols` cells).
    #[inline(always)]
    pub fn row(&self, row: usize) -> &'a [f64] {
        &self.data[row * self.stride..][..self.cols]
    }
}

/// A [`View`] to write.
#[derive(Debug)]
pub struct ViewMut<'a> {
    data: &'a mut [f64],
    stride: usize,
    rows: usize,
    cols: usize,
}

impl<'a> ViewMut<'a> {
    /// The rectangle that starts with the first cell of `data`.
    ///
    /// **Panics** when rows overlap or `data` is too short.
    pub fn new(data: &'a mut [f64], stride: usize, rows: usize, cols: usize) -> Self {
        check(data.len(), stride, rows, cols);
        Self {
            data,
            stride,
            rows,
            cols,
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// One row to write (`cols` cells).
    #[inline(always)]
    pub fn row_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.data[row * self.stride..][..self.cols]
    }
}

/// Cells from the first to the last of a rectangle, gaps between its rows included.
pub(crate) fn span(stride: usize, rows: usize, cols: usize) -> usize {
    if rows == 0 {
        0
    } else {
        (rows - 1) * stride + cols
    }
}

fn check(len: usize, stride: usize, rows: usize, cols: usize) {
    assert!(
        stride >= cols,
        "rows of {cols} cells overlap at stride {stride}"
    );
    assert!(
        len >= span(stride, rows, cols),
        "{len} cells hold no {rows} x {cols} at {stride}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_a_stride_apart() {
        let mut cells = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(View::new(&cells, 4, 2, 3).row(1), [4.0, 5.0, 6.0]);
        ViewMut::new(&mut cells, 4, 2, 3).row_mut(1)[0] = -4.0;
        assert_eq!(cells[4], -4.0);
    }

    #[test]
    #[should_panic(expected = "14 cells hold no 3 x 5 at 5")]
    fn too_few_cells_panic() {
        View::new(&[0.0; 14], 5, 3, 5);
    }

    #[test]
    #[should_panic(expected = "rows of 5 cells overlap at stride 4")]
    fn overlapping_rows_panic() {
        ViewMut::new(&mut [0.0; 20], 4, 3, 5);
    }
}
