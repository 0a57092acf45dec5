//! Arithmetic: products of matrices modulo [`MODULUS`], with `f64`.
//!
//! The right factor comes packed (see [`panels`]). `HEIGHT` rows and a band's depth of columns of
//! the left one are packed at a time, in strips of `STRIP` rows stored column by column. A tile of
//! the product, a strip high and a panel wide, stays in registers for the depth of a band: with
//! AVX-512 16 vectors, which take 16 multiply-adds for two loads and eight broadcasts. Taking the
//! sum modulo the prime is part of storing the tile.
//!
//! A strip meets `GROUP` panels before the next strip does. Packed rows and a group of panels, 256
//! and 512 KiB, are in the second level of the cache.

use std::cell::RefCell;
use std::ops::Range;
use std::{array, iter};

use ndarray::{ArrayView2, ArrayViewMut2, s};
use pulp::{Arch, Simd, WithSimd};

use super::panels::{self, WIDTH};
use crate::Matrix;

/// Number of rows of a strip, and of the largest tile.
const STRIP: usize = 8;
/// Number of rows packed at once.
const HEIGHT: usize = 128;
/// Number of panels that all packed rows are multiplied with before the next panels.
const GROUP: usize = 16;
/// Number whose addition and subtraction rounds numbers below 2^51 to whole ones: 1.5 times 2^52.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// Largest prime below 2^16. Products of two numbers are below 2^30, so `f64` holds the sum of 2^23
/// of them exactly.
pub const MODULUS: f64 = 65_521.0;

/// Position of a product in a sum of products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// `true` if the previous contents are overwritten.
    pub is_first: bool,
    /// `true` if the sum is complete, and taken modulo [`MODULUS`].
    pub is_last: bool,
}

impl Term {
    /// Sum of one product.
    pub const ONLY: Self = Self { is_first: true, is_last: true };
}

/// Adds the product of `a` (`rows x depth`) and the [packed](panels::pack) `b` (`depth x cols`) to
/// `c` (`rows x cols`).
///
/// **Panics** if the shapes do not match, `depth` is zero, or the cells of a row of `a` or of all
/// of `c` are not adjacent.
pub fn multiply(a: ArrayView2<'_, f64>, b: &[f64], c: ArrayViewMut2<'_, f64>, term: Term) {
    let (rows, cols) = c.dim();
    assert_eq!((a.nrows(), panels::len(a.ncols(), cols)), (rows, b.len()), "shapes match");
    assert!(a.ncols() > 0, "a sum of no products");
    if rows * cols == 0 {
        return;
    }
    let c = c.into_slice().expect(SIDE_BY_SIDE);
    STRIPS.with_borrow_mut(|strips| {
        for (first, c) in iter::zip((0..).step_by(HEIGHT), c.chunks_mut(HEIGHT * cols)) {
            let rows = first..first + c.len() / cols;
            for (top, panels) in iter::zip((0..).step_by(panels::DEPTH), panels::bands(b, cols)) {
                let depth = (a.ncols() - top).min(panels::DEPTH);
                pack_strips(a.slice(s![rows.clone(), top..top + depth]), strips);
                let term = Term {
                    is_first: term.is_first && top == 0,
                    is_last: term.is_last && top + depth == a.ncols(),
                };
                Arch::new().dispatch(Product { strips, panels, c, cols, depth, term });
            }
        }
    });
}

const SIDE_BY_SIDE: &str = "cells lie side by side";

thread_local! {
    /// Packed rows, at most 256 KiB.
    static STRIPS: RefCell<Vec<f64>> = const { RefCell::new(Vec::new()) };
}

/// Packs `a` into strips, the last of which is padded with zeros.
fn pack_strips(a: ArrayView2<'_, f64>, strips: &mut Vec<f64>) {
    let (rows, depth) = a.dim();
    strips.resize(rows.next_multiple_of(STRIP) * depth, 0.0);
    let zeros = [0.0; panels::DEPTH];
    for (first, strip) in iter::zip((0..).step_by(STRIP), strips.chunks_exact_mut(STRIP * depth)) {
        let (strip, _) = strip.as_chunks_mut::<STRIP>();
        let rows: [&[f64]; STRIP] = array::from_fn(|row| match first + row {
            row if row < rows => {
                &a.slice_move(s![row, ..]).to_slice().expect(SIDE_BY_SIDE)[..depth]
            }
            _ => &zeros[..depth],
        });
        for (col, cells) in strip.iter_mut().enumerate() {
            *cells = array::from_fn(|row| rows[row][col]);
        }
    }
}

/// Product of packed rows and one band, and its destination.
struct Product<'a> {
    strips: &'a [f64],
    panels: &'a [f64],
    c: &'a mut [f64],
    cols: usize,
    depth: usize,
    term: Term,
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // 16 sums in 32 registers, or 8 in 16.
        match S::F64_LANES {
            8 => self.tiles::<S, 8, 2>(simd),
            _ => self.tiles::<S, 4, 2>(simd),
        }
    }
}

impl Product<'_> {
    /// Computes all tiles of `ROWS` rows and `VECTORS` vectors.
    #[inline(always)]
    fn tiles<S: Simd, const ROWS: usize, const VECTORS: usize>(self, simd: S) {
        let Self { strips, panels, c, cols, depth, term } = self;
        for (group, panels) in panels.chunks(GROUP * depth * WIDTH).enumerate() {
            for (strip, a) in strips.chunks_exact(depth * STRIP).enumerate() {
                let (a, _) = a.as_chunks::<STRIP>();
                for (panel, b) in panels.chunks_exact(depth * WIDTH).enumerate() {
                    let (b, _) = b.as_chunks::<WIDTH>();
                    for row in (0..STRIP).step_by(ROWS) {
                        for col in (0..WIDTH).step_by(VECTORS * S::F64_LANES) {
                            let sums = sums::<S, ROWS, VECTORS>(simd, a, b, row, col);
                            let (row, col) =
                                (strip * STRIP + row, (group * GROUP + panel) * WIDTH + col);
                            store(simd, sums, c, cols, [row, col], term);
                        }
                    }
                }
            }
        }
    }
}

/// Computes the tile at `row` of a strip and `col` of a panel.
#[inline(always)]
fn sums<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    strip: &[[f64; STRIP]],
    panel: &[[f64; WIDTH]],
    row: usize,
    col: usize,
) -> [[S::f64s; VECTORS]; ROWS] {
    let mut sums = [[simd.splat_f64s(0.0); VECTORS]; ROWS];
    for (a, b) in iter::zip(strip, panel) {
        let (b, _) = S::as_simd_f64s(&b[col..col + VECTORS * S::F64_LANES]);
        let b: [S::f64s; VECTORS] = array::from_fn(|vector| b[vector]);
        for (a, sums) in iter::zip(&a[row..row + ROWS], &mut sums) {
            let a = simd.splat_f64s(*a);
            for (b, sum) in iter::zip(b, sums) {
                *sum = simd.mul_add_e_f64s(a, b, *sum);
            }
        }
    }
    sums
}

/// Stores the part of a tile that lies inside `c` at a row and a column.
#[inline(always)]
fn store<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    sums: [[S::f64s; VECTORS]; ROWS],
    c: &mut [f64],
    cols: usize,
    [row, col]: [usize; 2],
    term: Term,
) {
    let width = VECTORS * S::F64_LANES;
    if (row + ROWS) * cols <= c.len() && col + width <= cols {
        add(simd, sums, &mut c[row * cols + col..], cols, term);
    } else {
        store_cut(simd, sums, c, cols, [row, col], term);
    }
}

/// Stores a tile that is cut off at the edge of `c`, through a whole one.
#[inline(never)]
fn store_cut<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    sums: [[S::f64s; VECTORS]; ROWS],
    c: &mut [f64],
    cols: usize,
    [row, col]: [usize; 2],
    term: Term,
) {
    let mut tile = [0.0; STRIP * WIDTH];
    let inside = col.min(cols)..(col + VECTORS * S::F64_LANES).min(cols);
    let [start, end] = [row, row + ROWS].map(|row| c.len().min(row * cols));
    for (tile, row) in iter::zip(tile.chunks_mut(WIDTH), c[start..end].chunks(cols)) {
        tile[..inside.len()].copy_from_slice(&row[inside.clone()]);
    }
    add(simd, sums, &mut tile, WIDTH, term);
    for (tile, row) in iter::zip(tile.chunks(WIDTH), c[start..end].chunks_mut(cols)) {
        row[inside.clone()].copy_from_slice(&tile[..inside.len()]);
    }
}

/// Adds a tile to the beginning of `to`.
#[inline(always)]
fn add<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    sums: [[S::f64s; VECTORS]; ROWS],
    to: &mut [f64],
    stride: usize,
    term: Term,
) {
    for (sums, row) in iter::zip(sums, to.chunks_mut(stride)) {
        let (row, _) = S::as_mut_simd_f64s(&mut row[..VECTORS * S::F64_LANES]);
        for (sum, cell) in iter::zip(sums, row) {
            let sum = if term.is_first { sum } else { simd.add_f64s(*cell, sum) };
            *cell = if term.is_last { remainder(simd, sum) } else { sum };
        }
    }
}

/// Returns the remainders of whole numbers modulo [`MODULUS`] that are nearest to zero.
#[inline(always)]
fn remainder<S: Simd>(simd: S, x: S::f64s) -> S::f64s {
    let round = simd.splat_f64s(ROUND);
    let times = simd.mul_f64s(x, simd.splat_f64s(1.0 / MODULUS));
    let times = simd.sub_f64s(simd.add_f64s(times, round), round);
    simd.sub_f64s(x, simd.mul_f64s(times, simd.splat_f64s(MODULUS)))
}

/// Factor of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    /// Left factor.
    A,
    /// Right factor.
    B,
}

/// Creates a part of a matrix before the first multiplication: whole numbers, evenly spread around
/// zero, that depend on their positions alone.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes a product that ends inside a tile and has more than a group of panels, added to a
    /// matrix.
    fn product(with: impl FnOnce(Product<'_>)) -> Vec<f64> {
        let (rows, depth, cols) = (STRIP + 3, 7, (GROUP + 1) * WIDTH + 5);
        let mut strips = Vec::new();
        pack_strips(initial(Factor::A, 0..rows, 0..depth).view(), &mut strips);
        let panels = panels::pack(initial(Factor::B, 0..depth, 0..cols).view());
        let mut c = initial(Factor::A, 0..rows, 0..cols).into_cells();
        let term = Term { is_first: false, is_last: true };
        with(Product { strips: &strips, panels: &panels, c: &mut c, cols, depth, term });
        c
    }

    #[test]
    fn all_vectors_give_the_same_bits() {
        let expected = product(|product| product.with_simd(pulp::Scalar::new()));
        assert_eq!(product(|product| Arch::new().dispatch(product)), expected);
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            assert_eq!(product(|product| Simd::vectorize(simd, product)), expected);
        }
    }
}
