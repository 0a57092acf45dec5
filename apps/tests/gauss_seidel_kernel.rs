//! Kernel of Gauss-Seidel compared with the explicit formula, for every way to cut a matrix.

use ndarray::s;
use proptest::prelude::*;
use talpf_apps::Matrix;
use talpf_apps::gauss_seidel::kernel::{Ring, sweep};

fn filled(rows: usize, cols: usize, seed: u64) -> Matrix {
    let mut matrix = Matrix::zeros(rows, cols);
    let mut state = seed | 1;
    for row in 0..rows {
        for cell in matrix.row_mut(row) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *cell = (state >> 11) as f64 / (1_u64 << 40) as f64 - 4096.0;
        }
    }
    matrix
}

fn naive(matrix: &mut Matrix) {
    for r in 1..matrix.rows() - 1 {
        for c in 1..matrix.cols() - 1 {
            let vertical = matrix.row(r - 1)[c] + matrix.row(r + 1)[c];
            let before = vertical + matrix.row(r)[c + 1];
            matrix.row_mut(r)[c] = 0.25 * (before + matrix.row(r)[c - 1]);
        }
    }
}

fn in_blocks(matrix: &mut Matrix, height: usize, width: usize) {
    let (last_row, last_col) = (matrix.rows() - 1, matrix.cols() - 1);
    for top in (1..last_row).step_by(height) {
        for first in (1..last_col).step_by(width) {
            let (bottom, end) = ((top + height).min(last_row), (first + width).min(last_col));
            let mut view = matrix.view_mut();
            let (block, above, below, left, right) = view.multi_slice_mut((
                s![top..bottom, first..end],
                s![top - 1, first..end],
                s![bottom, first..end],
                s![top..bottom, first - 1],
                s![top..bottom, end],
            ));
            let ring = Ring {
                above: above.into_slice().expect("a row"),
                below: below.into_slice().expect("a row"),
                left: left.view(),
                right: right.view(),
            };
            sweep(block, ring);
        }
    }
}

proptest! {
    #[test]
    fn any_blocks_give_the_bits_of_the_formula(
        (rows, cols) in (1_usize..20, 1_usize..40),
        (height, width) in (1_usize..22, 1_usize..42),
        seed: u64,
    ) {
        let mut found = filled(rows + 2, cols + 2, seed);
        let mut expected = found.clone();
        naive(&mut expected);
        in_blocks(&mut found, height, width);
        prop_assert_eq!(found.first_difference(&expected), None);
    }
}

#[test]
fn every_width_around_the_lag_of_the_rows_gives_the_bits_of_the_formula() {
    for cols in 1..32 {
        let mut found = filled(10, cols + 2, cols as u64);
        let mut expected = found.clone();
        naive(&mut expected);
        in_blocks(&mut found, 8, cols);
        assert_eq!(found.first_difference(&expected), None, "{cols} columns");
    }
}
