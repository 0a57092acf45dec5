//! Arithmetic: products of matrices modulo [`MODULUS`], with `f64`.
//!
//! The right factor comes packed (see [`panels`]) in an order that does not depend on the
//! instruction set, as it may go to another machine. Some rows and columns of the left one are
//! packed at a time, in strips stored column by column.
//!
//! A tile of the product, a strip high and two vectors wide, stays in registers for these columns.
//! AVX-512 has 32 registers: 28 sums take 28 multiply-adds for two loads and 14 broadcasts. AVX2
//! has 16: 12 sums take 12 for two loads and six broadcasts, and are enough for two multiply-adds a
//! cycle of a latency of up to six. With AVX-512 rows that are left are in strips of four, and the right factor,
//! which comes from the second level, is prefetched. Taking the sum modulo the prime is part of storing the tile.
//!
//! `Blocking` says what stays in which cache.

use std::cell::RefCell;
use std::ops::Range;
use std::{array, iter};

use ndarray::{ArrayView2, ArrayViewMut2, Axis, s};
use pulp::{Arch, Simd, WithSimd};
use talpf_primitives::prefetch_all;

use super::panels::{self, WIDTH};
use crate::Matrix;
use crate::partition::pieces;

/// Largest number of rows of a tile.
const MOST_ROWS: usize = 14;
/// Rows of a panel from the one that is multiplied to the one that is prefetched: 168 cycles or more.
const AHEAD: usize = 12;
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
    STRIPS.with_borrow_mut(|strips| Arch::new().dispatch(Product { a, b, c, cols, term, strips }));
}

const SIDE_BY_SIDE: &str = "cells lie side by side";

thread_local! {
    /// Packed rows, at most 512 KiB, and those that are left.
    static STRIPS: RefCell<[Vec<f64>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

/// Packs `a` into strips of `ROWS` rows, the last of which is padded with zeros.
#[inline(always)]
fn pack_strips<const ROWS: usize>(a: ArrayView2<'_, f64>, strips: &mut Vec<f64>) {
    let (rows, depth) = a.dim();
    strips.resize(rows.next_multiple_of(ROWS) * depth, 0.0);
    let zeros = [0.0; panels::DEPTH];
    for (first, strip) in iter::zip((0..).step_by(ROWS), strips.chunks_exact_mut(ROWS * depth)) {
        let (strip, _) = strip.as_chunks_mut::<ROWS>();
        let rows: [&[f64]; ROWS] = array::from_fn(|row| match first + row {
            row if row < rows => {
                &a.slice_move(s![row, ..]).to_slice().expect(SIDE_BY_SIDE)[..depth]
            }
            _ => &zeros[..depth],
        });
        let rows = rows.map(|row| &row[..strip.len()]);
        for (col, cells) in strip.iter_mut().enumerate() {
            for (cell, row) in iter::zip(cells, rows) {
                *cell = row[col];
            }
        }
    }
}

/// Product of two matrices, and its destination.
struct Product<'a> {
    a: ArrayView2<'a, f64>,
    b: &'a [f64],
    c: &'a mut [f64],
    cols: usize,
    term: Term,
    /// Memory for packed rows, and those that are left.
    strips: &'a mut [Vec<f64>; 2],
}

/// Sizes of blocks that stay in a cache.
struct Blocking {
    /// Number of rows packed at once.
    height: usize,
    /// Largest number of columns of them packed at once.
    depth: usize,
    /// Number of panels that all packed rows are multiplied with before the next panels.
    group: usize,
}

impl Blocking {
    /// A strip, of 28 KiB, is in the first level while it meets a group. Packed rows and a group,
    /// 512 and 128 KiB, are in the second level.
    const OF_STRIPS: Self = Self { height: 256, depth: panels::DEPTH, group: 4 };
    /// Half a band of a panel, 16 KiB, and a strip of 6 KiB are in the first level of 32 KiB. A
    /// panel meets all strips, 132 KiB in the second level, before the next panel does.
    const OF_PANELS: Self = Self { height: 132, depth: panels::DEPTH / 2, group: 1 };
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match S::F64_LANES {
            8 => self.blocks::<S, MOST_ROWS, 4, 2>(simd, Blocking::OF_STRIPS),
            4 => self.blocks::<S, 6, 6, 2>(simd, Blocking::OF_PANELS),
            _ => self.blocks::<S, 4, 4, 2>(simd, Blocking::OF_PANELS),
        }
    }
}

impl Product<'_> {
    /// Computes the product in tiles of `ROWS` rows and `VECTORS` vectors, and what is left in tiles of
    /// `FEW_ROWS` rows.
    #[inline(always)]
    fn blocks<S: Simd, const ROWS: usize, const FEW_ROWS: usize, const VECTORS: usize>(
        self,
        simd: S,
        Blocking { height, depth, group }: Blocking,
    ) {
        let Self { a, b, c, cols, term, strips } = self;
        for (first, c) in iter::zip((0..).step_by(height), c.chunks_mut(height * cols)) {
            let rows = first..first + c.len() / cols;
            let (upper, lower) =
                a.slice(s![rows.clone(), ..]).split_at(Axis(0), rows.len() / ROWS * ROWS);
            for (top, panels) in iter::zip((0..).step_by(panels::DEPTH), panels::bands(b, cols)) {
                let band = (a.ncols() - top).min(panels::DEPTH);
                for inside in pieces(0..band, depth) {
                    let depth = top + inside.start..top + inside.end;
                    pack_strips::<ROWS>(upper.slice(s![.., depth.clone()]), &mut strips[0]);
                    pack_strips::<FEW_ROWS>(lower.slice(s![.., depth.clone()]), &mut strips[1]);
                    let term = Term {
                        is_first: term.is_first && depth.start == 0,
                        is_last: term.is_last && depth.end == a.ncols(),
                    };
                    let groups = panels.chunks(group * band * WIDTH);
                    for (col, panels) in iter::zip((0..).step_by(group * WIDTH), groups) {
                        let group = Group { panels, band, inside: inside.clone(), col };
                        let row = upper.nrows();
                        group.multiply::<S, ROWS, VECTORS>(simd, &strips[0], c, cols, term);
                        group.multiply::<S, FEW_ROWS, VECTORS>(
                            simd,
                            &strips[1],
                            &mut c[row * cols..],
                            cols,
                            term,
                        );
                    }
                }
            }
        }
    }
}

/// Panels that packed rows are multiplied with.
struct Group<'a> {
    panels: &'a [f64],
    /// Number of rows of a panel.
    band: usize,
    /// Rows of a panel that are multiplied.
    inside: Range<usize>,
    /// First column of the first panel.
    col: usize,
}

impl Group<'_> {
    /// Computes all tiles of `ROWS` rows and `VECTORS` vectors.
    #[inline(always)]
    fn multiply<S: Simd, const ROWS: usize, const VECTORS: usize>(
        &self,
        simd: S,
        strips: &[f64],
        c: &mut [f64],
        cols: usize,
        term: Term,
    ) {
        let Self { panels, band, inside, col: first } = self;
        for (strip, a) in strips.chunks_exact(inside.len() * ROWS).enumerate() {
            let (a, _) = a.as_chunks::<ROWS>();
            let (panels, _) = panels.as_chunks::<WIDTH>();
            for (panel, start) in (0..panels.len()).step_by(*band).enumerate() {
                let b = &panels[start + inside.start..];
                for col in (0..WIDTH).step_by(VECTORS * S::F64_LANES) {
                    let sums = sums::<S, ROWS, VECTORS>(simd, a, b, col);
                    let place = [strip * ROWS, first + panel * WIDTH + col];
                    store(simd, sums, c, cols, place, term);
                }
            }
        }
    }
}

/// Computes the tile of a strip at `col` of the first panel.
#[inline(always)]
fn sums<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    strip: &[[f64; ROWS]],
    panels: &[[f64; WIDTH]],
    col: usize,
) -> [[S::f64s; VECTORS]; ROWS] {
    let mut sums = [[simd.splat_f64s(0.0); VECTORS]; ROWS];
    for (nth, (a, b)) in iter::zip(strip, panels).enumerate() {
        if S::F64_LANES == 8
            && let Some(ahead) = panels.get(nth + AHEAD)
        {
            prefetch_all(&ahead[col..col + VECTORS * S::F64_LANES]);
        }
        let (b, _) = S::as_simd_f64s(&b[col..col + VECTORS * S::F64_LANES]);
        let b: [S::f64s; VECTORS] = array::from_fn(|vector| b[vector]);
        for (a, sums) in iter::zip(a, &mut sums) {
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
    let mut tile = [0.0; MOST_ROWS * WIDTH];
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

    /// Computes a product of `rows` rows that ends inside a panel and has more than a group of them, added to a
    /// matrix.
    fn product(rows: usize, with: impl FnOnce(Product<'_>)) -> Vec<f64> {
        let (depth, cols) = (150, 17 * WIDTH + 5);
        let a = initial(Factor::A, 0..rows, 0..depth);
        let b = panels::pack(initial(Factor::B, 0..depth, 0..cols).view());
        let mut c = initial(Factor::A, 0..rows, 0..cols).into_cells();
        let term = Term { is_first: false, is_last: true };
        let strips = &mut [Vec::new(), Vec::new()];
        with(Product { a: a.view(), b: &b, c: &mut c, cols, term, strips });
        c
    }

    #[test]
    fn all_vectors_give_the_same_bits() {
        // Fewer than a strip, whole strips, some left, and more than are packed at once.
        for rows in [3, 2 * MOST_ROWS, 2 * MOST_ROWS + 3, 256 + MOST_ROWS + 6] {
            let expected = product(rows, |product| product.with_simd(pulp::Scalar::new()));
            assert_eq!(product(rows, |product| Arch::new().dispatch(product)), expected);
            #[cfg(target_arch = "x86_64")]
            if let Some(simd) = pulp::x86::V3::try_new() {
                assert_eq!(product(rows, |product| Simd::vectorize(simd, product)), expected);
            }
        }
    }
}
