//! Arithmetic of a step, on any rectangle of a matrix.
//!
//! A cell needs the new cell to its left, so a row is one chain of additions and multiplications,
//! bound by their latency, not their rate. Several rows at a time keep as many chains in flight.
//! Each row is some cells behind the one above it, for two reasons. The cell above is written well
//! before it is read: one cell behind, all four additions and multiplications of a cell would be
//! links of the chain instead of the last two. And in a matrix whose rows are nearly a multiple of
//! 4 KiB long, as with a border around 512 columns, the cells of a front lie in different sets of the
//! cache.
//!
//! A fused multiplication and addition, `0.25 * left + 0.25 * sum`, would halve the chain, but a cell
//! would take two multiplications in place of one. In the first steps from zeros most numbers are
//! below 2<sup>-1022</sup>, and a multiplication of one takes a hundred cycles.

use std::array;
use std::cell::Cell;
use std::ops::Range;

use ndarray::{ArrayView1, ArrayViewMut2, s};

use crate::Matrix;

/// Cells around a rectangle: those above and to the left are of this step, those below and to the
/// right of the previous step.
#[derive(Clone, Copy, Debug)]
pub struct Ring<'a> {
    /// Row above the rectangle (`cols`).
    pub above: &'a [f64],
    /// Row below the rectangle (`cols`).
    pub below: &'a [f64],
    /// Column to the left of the rectangle (`rows`).
    pub left: ArrayView1<'a, f64>,
    /// Column to the right of the rectangle (`rows`).
    pub right: ArrayView1<'a, f64>,
}

/// Number of cells that a row is behind the one above it.
const LAG: usize = 6;
/// Number of rows that are computed together: their additions take as long as a link of a chain.
const ROWS: usize = 4;

/// Computes one Gauss-Seidel step on a rectangle (`rows x cols`) inside `ring`.
///
/// Each cell becomes `0.25 * (((up + down) + right) + left)`, whatever rectangle it is computed in,
/// so a matrix cut into any blocks gets the same bits.
///
/// **Panics** if the shapes do not match, or the cells of a row are not adjacent.
pub fn sweep(mut block: ArrayViewMut2<'_, f64>, ring: Ring<'_>) {
    let (height, width) = block.dim();
    let sides = [ring.above.len(), ring.below.len(), ring.left.len(), ring.right.len()];
    assert_eq!(sides, [width, width, height, height], "the ring lies around the rectangle");
    if width == 0 {
        return;
    }
    let rows = block.rows_mut().into_iter();
    let mut rows: Vec<&mut [f64]> = rows.map(|row| row.into_slice().expect(SIDE_BY_SIDE)).collect();
    for first in (0..height).step_by(ROWS) {
        let (above, rest) = rows.split_at_mut(first);
        let (rows, below) = rest.split_at_mut(ROWS.min(rest.len()));
        let up = above.last().map_or(ring.above, |row| row);
        let down = below.first().map_or(ring.below, |row| row);
        let side = |cells: ArrayView1<'_, f64>| {
            array::from_fn(|k| cells.get(first + k).copied().unwrap_or_default())
        };
        Together { up, rows, down, left: side(ring.left), right: side(ring.right) }.sweep();
    }
}

/// Computes one step on the columns `cols` of a matrix, in all rows but the first and the last.
///
/// **Panics** if no columns surround them.
pub fn sweep_columns(matrix: &mut Matrix, cols: Range<usize>) {
    let (before, after) = (cols.start - 1, cols.end);
    let last = matrix.rows() - 1;
    let mut view = matrix.view_mut();
    let (block, above, below, left, right) = view.multi_slice_mut((
        s![1..last, cols.clone()],
        s![0, cols.clone()],
        s![last, cols],
        s![1..last, before],
        s![1..last, after],
    ));
    let ring = Ring {
        above: above.into_slice().expect(SIDE_BY_SIDE),
        below: below.into_slice().expect(SIDE_BY_SIDE),
        left: left.view(),
        right: right.view(),
    };
    sweep(block, ring);
}

const SIDE_BY_SIDE: &str = "the cells of a row lie side by side";

/// Rows of which number `k` is at column `front - LAG * k`: the row above it has computed that
/// column `LAG` fronts earlier, and the row below gets there `LAG` fronts later.
struct Together<'r, 'a> {
    up: &'r [f64],
    rows: &'r mut [&'a mut [f64]],
    down: &'r [f64],
    /// Cells to the left of the next ones.
    left: [f64; ROWS],
    /// Cells to the right of the last ones.
    right: [f64; ROWS],
}

impl Together<'_, '_> {
    /// Computes all fronts. The rows begin one after the other, and end so.
    fn sweep(mut self) {
        let (cols, count) = (self.up.len(), self.rows.len());
        let behind = LAG * (count - 1);
        if cols <= behind + 1 {
            for front in 0..cols + behind {
                self.front_at_edge(front);
            }
            return;
        }
        for begun in 1..count {
            self.inside(0..begun, LAG * (begun - 1)..LAG * begun);
        }
        self.inside(0..count, behind..cols - 1);
        for ended in 0..count {
            let last = cols - 1 + LAG * ended;
            self.front_at_edge(last);
            if ended + 1 < count {
                self.inside(ended + 1..count, last + 1..last + LAG);
            }
        }
    }

    /// Computes `fronts`, which are inside of `rows`, before their last columns, and outside of the
    /// other rows.
    fn inside(&mut self, rows: Range<usize>, fronts: Range<usize>) {
        let Range { start: first, end } = rows;
        let (above, rest) = self.rows.split_at_mut(first);
        let (rows, below) = rest.split_at_mut(end - first);
        let up = above.last().map_or(self.up, |row| row);
        let down = below.first().map_or(self.down, |row| row);
        let left = &mut self.left[first..end];
        let fronts = fronts.start - LAG * first..fronts.end - LAG * first;
        match rows.len() {
            1 => fronts_inside::<1>(up, rows, down, left, fronts),
            2 => fronts_inside::<2>(up, rows, down, left, fronts),
            3 => fronts_inside::<3>(up, rows, down, left, fronts),
            _ => fronts_inside::<ROWS>(up, rows, down, left, fronts),
        }
    }

    /// Computes a front that does not lie inside all rows, or is at the last column of one.
    fn front_at_edge(&mut self, front: usize) {
        let Self { up, rows, down, left, right } = self;
        let cols = up.len();
        for k in 0..rows.len() {
            let col = front.checked_sub(LAG * k).filter(|&col| col < cols);
            let Some(col) = col else { continue };
            let above = if k == 0 { up[col] } else { rows[k - 1][col] };
            let below = rows.get(k + 1).map_or(down[col], |row| row[col]);
            let after = rows[k].get(col + 1).copied().unwrap_or(right[k]);
            left[k] = mean(above, below, after, left[k]);
            rows[k][col] = left[k];
        }
    }
}

/// Computes `fronts`, which are inside of all rows and before their last columns.
// A function of its own: inlined, a chain goes through memory.
#[inline(never)]
fn fronts_inside<const COUNT: usize>(
    up: &[f64],
    rows: &mut [&mut [f64]],
    down: &[f64],
    left_cells: &mut [f64],
    fronts: Range<usize>,
) {
    let Range { start, end } = fronts;
    let count = end - start;
    let col = |k: usize| start - LAG * k;
    // A row is read while it is written, at other columns.
    let rows: &mut [&mut [f64]; COUNT] = rows.try_into().expect("as many as were asked for");
    let rows = rows.each_mut().map(|row| Cell::from_mut(&mut **row).as_slice_of_cells());
    let part = |row: usize, col: usize| &rows[row][col..][..count];
    let cells: [_; COUNT] = array::from_fn(|k| part(k, col(k)));
    let right: [_; COUNT] = array::from_fn(|k| part(k, col(k) + 1));
    // Above the first row and below the last one are `up` and `down`: those two parts are not read.
    let above: [_; COUNT] = array::from_fn(|k| part(k.saturating_sub(1), col(k)));
    let below: [_; COUNT] = array::from_fn(|k| part((k + 1).min(COUNT - 1), col(k)));
    let (up, down) = (&up[start..][..count], &down[col(COUNT - 1)..][..count]);
    let mut left: [f64; COUNT] = array::from_fn(|k| left_cells[k]);
    for front in 0..count {
        for k in 0..COUNT {
            let above = if k == 0 { up[front] } else { above[k][front].get() };
            let below = if k == COUNT - 1 { down[front] } else { below[k][front].get() };
            left[k] = mean(above, below, right[k][front].get(), left[k]);
        }
        // After all, so that the compiler can make vectors of two rows.
        for k in 0..COUNT {
            cells[k][front].set(left[k]);
        }
    }
    left_cells.copy_from_slice(&left);
}

#[inline(always)]
fn mean(up: f64, down: f64, right: f64, left: f64) -> f64 {
    // The cell to the left comes last, so that the chain has only one addition and one
    // multiplication.
    0.25 * (((up + down) + right) + left)
}
