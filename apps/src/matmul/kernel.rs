//! The arithmetic: products of matrices modulo [`MODULUS`], by way of `f64`.
//!
//! The product is that of `ndarray`, which is the `matrixmultiply` crate: blocked for the caches,
//! with vectors and fused operations where the machine has them, in plain Rust.

use std::ops::Range;

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2};

use crate::Matrix;

/// The largest prime below 2^16. Products of two numbers are below 2^30, so `f64` holds the sum of
/// 2^23 of them exactly.
pub const MODULUS: f64 = 65_521.0;

/// Where a product stands in a sum of products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// What was there before does not count.
    pub is_first: bool,
    /// The sum is complete, and taken modulo [`MODULUS`].
    pub is_last: bool,
}

impl Term {
    /// A sum of one product.
    pub const ONLY: Self = Self { is_first: true, is_last: true };
}

/// Adds the product of `a` (`rows x depth`) and `b` (`depth x cols`) to `c` (`rows x cols`).
///
/// **Panics** when the shapes do not match.
pub fn multiply(
    a: ArrayView2<'_, f64>,
    b: ArrayView2<'_, f64>,
    c: ArrayViewMut2<'_, f64>,
    term: Term,
) {
    let mut c = c;
    let before = if term.is_first { 0.0 } else { 1.0 };
    general_mat_mul(1.0, &a, &b, before, &mut c);
    if term.is_last {
        c.map_inplace(|x| *x -= (*x * (1.0 / MODULUS)).round() * MODULUS);
    }
}

/// Which of the two matrices of a problem a number is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    /// The left one.
    A,
    /// The right one.
    B,
}

/// A part of a matrix before the first multiplication: whole numbers, evenly spread around zero,
/// that depend on their places alone.
pub fn initial(factor: Factor, rows: Range<usize>, cols: Range<usize>) -> Matrix {
    let salt = match factor {
        Factor::A => 0x9e37_79b9_7f4a_7c15,
        Factor::B => 0xd1b5_4a32_d192_ed03_u64,
    };
    let mut matrix = Matrix::zeros(rows.len(), cols.len());
    for (local, row) in rows.enumerate() {
        for (cell, col) in matrix.row_mut(local).iter_mut().zip(cols.clone()) {
            let place = ((row as u64) << 32) | col as u64;
            let mut z = place.wrapping_mul(salt);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            *cell = ((z ^ (z >> 31)) % 65_521) as f64 - 32_760.0;
        }
    }
    matrix
}
