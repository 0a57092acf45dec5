//! Kernel of products compared with explicit sums, for shapes that end inside a tile.

use proptest::prelude::*;
use talpf_apps::Matrix;
use talpf_apps::matmul::kernel::{Factor, MODULUS, Term, initial, multiply};
use talpf_apps::matmul::panels;

/// Computes `c + a b` in whole numbers modulo the prime.
fn naive(a: &Matrix, b: &Matrix, c: &Matrix) -> Matrix {
    let mut result = c.clone();
    for row in 0..c.rows() {
        for col in 0..c.cols() {
            let product = |k: usize| a.row(row)[k] as i64 * b.row(k)[col] as i64;
            let sum: i64 = (0..b.rows()).map(product).sum();
            let sum = c.row(row)[col] as i64 + sum;
            result.row_mut(row)[col] = sum.rem_euclid(MODULUS as i64) as f64;
        }
    }
    result
}

/// Returns the remainders between zero and the prime.
fn positive(matrix: &Matrix) -> Matrix {
    let cells = matrix.cells().iter().map(|cell| cell.rem_euclid(MODULUS)).collect();
    Matrix::from_cells(cells, matrix.cols())
}

/// Computes the product of `a` and `b`, which are cut into terms of `piece` columns and rows.
fn in_terms(a: &Matrix, b: &Matrix, before: Option<&Matrix>, piece: usize) -> Matrix {
    let mut c = before.cloned().unwrap_or_else(|| initial(Factor::B, 0..a.rows(), 0..b.cols()));
    for first in (0..b.rows()).step_by(piece) {
        let depth = first..(first + piece).min(b.rows());
        let term =
            Term { is_first: before.is_none() && first == 0, is_last: depth.end == b.rows() };
        let packed = panels::pack(b.block(depth.clone(), 0..b.cols()));
        multiply(a.block(0..a.rows(), depth), &packed, c.view_mut(), term);
    }
    c
}

proptest! {
    #[test]
    fn products_are_the_sums_written_out(
        (rows, depth, cols) in (1_usize..40, 1_usize..40, 1_usize..70),
        piece in 1_usize..45,
    ) {
        let (a, b) = (initial(Factor::A, 0..rows, 0..depth), initial(Factor::B, 0..depth, 0..cols));
        let c = initial(Factor::A, 0..rows, 0..cols);
        let zeros = Matrix::zeros(rows, cols);
        let alone = in_terms(&a, &b, None, piece);
        prop_assert_eq!(positive(&alone), naive(&a, &b, &zeros));
        prop_assert_eq!(alone.hash(), in_terms(&a, &b, None, depth).hash());
        prop_assert!(alone.cells().iter().all(|cell| cell.abs() <= MODULUS / 2.0));
        prop_assert_eq!(positive(&in_terms(&a, &b, Some(&c), piece)), naive(&a, &b, &c));
    }
}

/// Tests sizes around the numbers of rows and columns packed at once, the depth of a band, and the
/// columns of a group of panels (one less, equal, one more); and one row and one column.
#[test]
fn products_are_the_sums_written_out_around_the_sizes_of_blocks() {
    let strips = [(127, 255, 255), (128, 256, 256), (129, 257, 257)];
    let panels = [(131, 127, 15), (132, 128, 16), (133, 129, 17)];
    for (rows, depth, cols) in [strips, panels].concat().into_iter().chain([(1, 513, 1)]) {
        let (a, b) = (initial(Factor::A, 0..rows, 0..depth), initial(Factor::B, 0..depth, 0..cols));
        let product = in_terms(&a, &b, None, depth);
        assert_eq!(positive(&product), naive(&a, &b, &Matrix::zeros(rows, cols)));
    }
}

#[test]
#[should_panic(expected = "shapes match")]
fn a_packed_matrix_of_another_shape_is_refused() {
    let (a, b) = (initial(Factor::A, 0..3, 0..4), initial(Factor::B, 0..5, 0..3));
    let mut c = Matrix::zeros(3, 3);
    multiply(a.view(), &panels::pack(b.view()), c.view_mut(), Term::ONLY);
}

#[test]
#[should_panic(expected = "a sum of no products")]
fn a_sum_of_no_products_is_refused() {
    let (a, mut c) = (Matrix::zeros(3, 0), Matrix::zeros(3, 3));
    multiply(a.view(), &[], c.view_mut(), Term::ONLY);
}
