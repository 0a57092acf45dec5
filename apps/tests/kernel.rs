//! Kernel of Jacobi compared with the explicit formula, for every way to cut a matrix into blocks.

use proptest::prelude::*;
use talpf_apps::Matrix;
use talpf_apps::jacobi::kernel;

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

fn naive(old: &Matrix) -> Matrix {
    let mut new = old.clone();
    for r in 1..old.rows() - 1 {
        for c in 1..old.cols() - 1 {
            let vertical = old.row(r - 1)[c] + old.row(r + 1)[c];
            let horizontal = old.row(r)[c - 1] + old.row(r)[c + 1];
            new.row_mut(r)[c] = 0.25 * (vertical + horizontal);
        }
    }
    new
}

proptest! {
    #[test]
    fn any_blocks_give_the_bits_of_the_formula(
        (rows, cols) in (1_usize..40, 1_usize..90),
        (height, width) in (1_usize..45, 1_usize..95),
        seed: u64,
    ) {
        let old = filled(rows + 2, cols + 2, seed);
        let mut new = old.clone();
        for row in (0..rows).step_by(height) {
            for col in (0..cols).step_by(width) {
                let (end, right) = ((row + height).min(rows), (col + width).min(cols));
                kernel::sweep(
                    old.block(row..end + 2, col..right + 2),
                    new.block_mut(row + 1..end + 1, col + 1..right + 1),
                );
            }
        }
        prop_assert_eq!(new.first_difference(&naive(&old)), None);
    }

    #[test]
    fn strides_of_old_and_new_may_differ(
        (rows, cols) in (1_usize..9, 1_usize..40),
        (old_gap, new_gap) in (0_usize..5, 0_usize..5),
        seed: u64,
    ) {
        let whole = filled(rows + 2, cols + 2 + old_gap, seed);
        let mut new = Matrix::zeros(rows, cols + new_gap);
        new.view_mut().fill(f64::NAN);
        kernel::sweep(
            whole.block(0..rows + 2, 0..cols + 2),
            new.block_mut(0..rows, 0..cols),
        );
        let expected = naive(&whole);
        for row in 0..rows {
            let (cells, gap) = new.row(row).split_at(cols);
            prop_assert_eq!(cells, &expected.row(row + 1)[1..cols + 1]);
            prop_assert!(gap.iter().all(|cell| cell.is_nan()), "gap written");
        }
    }
}

#[test]
fn empty_rectangle_is_left_alone() {
    let old = Matrix::zeros(5, 5);
    let mut new = old.clone();
    kernel::sweep(old.block(0..2, 0..5), new.block_mut(0..0, 0..3));
    kernel::sweep(old.block(0..5, 0..2), new.block_mut(0..3, 0..0));
    assert_eq!(new, old);
}

#[test]
#[should_panic(expected = "side by side")]
fn cells_of_a_row_that_lie_apart_panic() {
    let old = Matrix::zeros(6, 4);
    kernel::sweep(old.view().reversed_axes(), Matrix::zeros(2, 4).view_mut());
}

#[test]
#[should_panic(expected = "ring of one cell")]
fn shapes_that_do_not_match_panic() {
    let old = Matrix::zeros(4, 4);
    kernel::sweep(old.view(), Matrix::zeros(4, 4).view_mut());
}
