//! Right factor of a product, packed once in the order in which the kernel reads it.
//!
//! A matrix is cut into bands of `DEPTH` rows, a band into panels of `WIDTH` columns, and a
//! panel is stored row by row. The last band has the rows that are left; the last panel of a band
//! has as many columns as all, zeros where the matrix has none.

use ndarray::{ArrayView2, Axis};

/// Number of columns of a panel: two vectors of AVX-512.
pub(super) const WIDTH: usize = 16;
/// Largest number of rows of a band: a panel is 32 KiB.
pub(super) const DEPTH: usize = 256;

/// Returns the number of numbers in a packed matrix of `rows x cols`.
pub fn len(rows: usize, cols: usize) -> usize {
    rows * cols.next_multiple_of(WIDTH)
}

/// Packs a matrix into [`len`] numbers.
pub fn pack(matrix: ArrayView2<'_, f64>) -> Vec<f64> {
    let mut packed = Vec::with_capacity(len(matrix.nrows(), matrix.ncols()));
    for band in matrix.axis_chunks_iter(Axis(0), DEPTH) {
        for panel in band.axis_chunks_iter(Axis(1), WIDTH) {
            for row in panel.rows() {
                packed.extend(row);
                packed.resize(packed.len().next_multiple_of(WIDTH), 0.0);
            }
        }
    }
    packed
}

/// Returns the bands of a packed matrix with `cols` columns, from the top.
pub(super) fn bands(packed: &[f64], cols: usize) -> impl Iterator<Item = &[f64]> {
    packed.chunks(len(DEPTH, cols))
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;

    #[test]
    fn panels_are_filled_up_with_zeros_and_bands_are_not() {
        let matrix = Array2::from_shape_fn((DEPTH + 1, WIDTH + 1), |(row, col)| {
            (100 * row + col + 1) as f64
        });
        let packed = pack(matrix.view());
        assert_eq!(packed.len(), len(DEPTH + 1, WIDTH + 1));
        let bands: Vec<_> = bands(&packed, WIDTH + 1).collect();
        assert_eq!((bands[0].len(), bands[1].len()), (DEPTH * 2 * WIDTH, 2 * WIDTH));
        assert_eq!(bands[0][..2 * WIDTH][WIDTH - 1..=WIDTH], [16.0, 101.0]);
        assert_eq!(bands[0][DEPTH * WIDTH..][..2], [17.0, 0.0]);
        assert_eq!(bands[1][WIDTH..][..2], [25_617.0, 0.0]);
    }
}
