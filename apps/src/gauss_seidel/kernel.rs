//! Arithmetic of a step, on any rectangle of a matrix.
//!
//! A cell needs the new cell to its left, so a row is one chain of additions and multiplications,
//! bound by their latency, not their rate. Several rows at a time keep as many chains in flight.
//! Each row is some cells behind the one above it, for two reasons. The cell above is written well
//! before it is read: one cell behind, all four additions and multiplications of a cell would be
//! links of the chain instead of the last two. And in a matrix whose rows are nearly a multiple of
//! 4 KiB long, as with a border around 512 columns, the cells of a front lie in different sets of the
//! cache.

use std::array;
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
const LAG: usize = 5;

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
    // The additions of four rows take as long as one link of a chain, so more rows gain nothing.
    let mut done = sweep_rows::<4>(&mut rows, 0, ring);
    done = sweep_rows::<2>(&mut rows, done, ring);
    sweep_rows::<1>(&mut rows, done, ring);
}

/// Computes the rows from number `done` on, `ROWS` at a time, as long as that many are left. Returns
/// the number of the first row that is left.
fn sweep_rows<const ROWS: usize>(
    rows: &mut [&mut [f64]],
    mut done: usize,
    ring: Ring<'_>,
) -> usize {
    loop {
        let (above, rest) = rows.split_at_mut(done);
        let Some((together, below)) = rest.split_first_chunk_mut::<ROWS>() else {
            return done;
        };
        let up = above.last().map_or(ring.above, |row| row);
        let down = below.first().map_or(ring.below, |row| row);
        let sides = array::from_fn(|row| (ring.left[done + row], ring.right[done + row]));
        sweep_together(up, together, down, sides);
        done += ROWS;
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

#[inline(always)]
fn mean(up: f64, down: f64, right: f64, left: f64) -> f64 {
    // The cell to the left comes last, so that the chain has only one addition and one
    // multiplication.
    0.25 * (((up + down) + right) + left)
}

/// Computes rows of which number `k` is at column `front - LAG * k`: the row above it has computed
/// that column `LAG` fronts earlier, and the row below gets there `LAG` fronts later.
// A function of its own: inlined, a chain goes through memory.
#[inline(never)]
fn sweep_together<const ROWS: usize>(
    up: &[f64],
    rows: &mut [&mut [f64]; ROWS],
    down: &[f64],
    sides: [(f64, f64); ROWS],
) {
    let cols = up.len();
    let down = &down[..cols];
    let mut rows = rows.each_mut().map(|row| &mut row[..cols]);
    // All rows are inside, and none at its last column.
    let behind = LAG * (ROWS - 1);
    let inner = behind..(cols - 1).max(behind);
    for front in 0..inner.start {
        front_at_edge(up, &mut rows, down, sides, front);
    }
    if !inner.is_empty() {
        let mut left: [f64; ROWS] = array::from_fn(|k| match behind - LAG * k {
            0 => sides[k].0,
            col => rows[k][col - 1],
        });
        for front in inner.clone() {
            let next: [f64; ROWS] = array::from_fn(|k| {
                let col = front - LAG * k;
                let up = if k == 0 { up[col] } else { rows[k - 1][col] };
                let down = if k == ROWS - 1 { down[col] } else { rows[k + 1][col] };
                mean(up, down, rows[k][col + 1], left[k])
            });
            left = next;
            for (k, cell) in left.into_iter().enumerate() {
                rows[k][front - LAG * k] = cell;
            }
        }
    }
    for front in inner.end..cols + behind {
        front_at_edge(up, &mut rows, down, sides, front);
    }
}

/// Computes a front that does not lie inside all rows.
fn front_at_edge<const ROWS: usize>(
    up: &[f64],
    rows: &mut [&mut [f64]; ROWS],
    down: &[f64],
    sides: [(f64, f64); ROWS],
    front: usize,
) {
    let cols = up.len();
    for k in 0..ROWS {
        let Some(col) = front.checked_sub(LAG * k).filter(|&col| col < cols) else { continue };
        let above = if k == 0 { up[col] } else { rows[k - 1][col] };
        let below = if k == ROWS - 1 { down[col] } else { rows[k + 1][col] };
        let left = if col > 0 { rows[k][col - 1] } else { sides[k].0 };
        let right = if col + 1 < cols { rows[k][col + 1] } else { sides[k].1 };
        rows[k][col] = mean(above, below, right, left);
    }
}
