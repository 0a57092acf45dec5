//! Arithmetic of a step, on any rectangle of a matrix.
//!
//! The loop is plain Rust, compiled once for each instruction set and chosen at run time by `pulp`.
//! On x86-64 rustc 1.95 compiles it to four vectors at a time of eight numbers (AVX-512), four
//! (AVX2) or two (SSE2), each with two loads, two adds from memory, one add and one multiplication.
//! Bounds are checked once per row.
//!
//! On a matrix larger than the caches the loop waits for memory alone: an update moves 24 bytes
//! (one number read, one fetched and written back) at the rate of a copy. Writing past the caches
//! did not help there. Long rows do: the hardware's prefetch follows a row within its page and
//! starts anew in the next, so that rows of 2 KiB wait for one latency after the other.

use ndarray::{ArrayView2, ArrayViewMut2};
use pulp::{Arch, Simd, WithSimd};

/// Computes one Jacobi step on a rectangle: `new` (`rows x cols`) gets the means of the neighbours
/// in `old` (`(rows + 2) x (cols + 2)`: the rectangle and the ring of cells around it).
///
/// Each cell is `0.25 * ((up + down) + (left + right))` whatever rectangle it is computed in and
/// however wide the vectors are, so a matrix cut into any blocks gets the same bits.
///
/// **Panics** if the shapes do not match, or the cells of a row are not adjacent.
pub fn sweep(old: ArrayView2<'_, f64>, new: ArrayViewMut2<'_, f64>) {
    assert_eq!(
        old.dim(),
        (new.nrows() + 2, new.ncols() + 2),
        "the old rectangle is the new one with a ring of one cell around it",
    );
    Arch::new().dispatch(Sweep { old, new });
}

/// Returns the number of numbers in the vectors that [`sweep`] uses on this machine.
pub fn lanes() -> usize {
    Arch::new().dispatch(Lanes)
}

struct Sweep<'a> {
    old: ArrayView2<'a, f64>,
    new: ArrayViewMut2<'a, f64>,
}

impl WithSimd for Sweep<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        let cols = self.new.ncols();
        let old_row = |row: usize| self.old.row(row).to_slice().expect(SIDE_BY_SIDE);
        let (mut up, mut middle) = (old_row(0), old_row(1));
        for row in 0..self.new.nrows() {
            let down = old_row(row + 2);
            let new = self.new.row_mut(row).into_slice().expect(SIDE_BY_SIDE);
            let (left, right) = (&middle[..cols], &middle[2..][..cols]);
            means(&up[1..][..cols], &down[1..][..cols], left, right, &mut new[..cols]);
            (up, middle) = (middle, down);
        }
    }
}

const SIDE_BY_SIDE: &str = "the cells of a row lie side by side";

/// Computes one row, given as slices of one length, so that no cell is bounds-checked. A function
/// of its own, so that the compiler knows that `new` does not alias the others.
#[inline(always)]
fn means(up: &[f64], down: &[f64], left: &[f64], right: &[f64], new: &mut [f64]) {
    for col in 0..new.len() {
        new[col] = 0.25 * ((up[col] + down[col]) + (left[col] + right[col]));
    }
}

struct Lanes;

impl WithSimd for Lanes {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        S::F64_LANES
    }
}
