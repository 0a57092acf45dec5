//! Arithmetic of a step, on any rectangle of a matrix.
//!
//! A cell needs the new cell to its left, so a row is one chain of additions and multiplications,
//! bound by their latency, not their rate. Four rows at a time keep four chains in flight. Each row
//! is two cells behind the one above it: one cell behind, it would need the cell above in the very
//! front after that was computed, and all four additions and multiplications of a cell would be
//! links of the chain instead of the last two.

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

/// Number of rows computed at once.
const ROWS: usize = 4;

/// Number of cells that a row is behind the one above it.
const LAG: usize = 2;

/// Number of cells that the last row is behind the first.
const BEHIND: usize = LAG * (ROWS - 1);

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
    let mut done = 0;
    while done < height {
        let (above, rest) = rows.split_at_mut(done);
        let up: &[f64] = above.last().map_or(ring.above, |row| row);
        let [left, right] = [ring.left, ring.right].map(|side| move |row: usize| side[done + row]);
        match rest {
            [a, b, c, d, below @ ..] => {
                let down: &[f64] = below.first().map_or(ring.below, |row| row);
                let sides = [0, 1, 2, 3].map(|row| (left(row), right(row)));
                four_rows(up, [a, b, c, d], down, sides);
                done += ROWS;
            }
            [row, below @ ..] => {
                let down: &[f64] = below.first().map_or(ring.below, |row| row);
                one_row(up, row, down, (left(0), right(0)));
                done += 1;
            }
            [] => return,
        }
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

fn one_row(up: &[f64], row: &mut [f64], down: &[f64], (left, right): (f64, f64)) {
    let last = row.len() - 1;
    let (up, down) = (&up[..=last], &down[..=last]);
    let mut before = left;
    for col in 0..last {
        before = mean(up[col], down[col], row[col + 1], before);
        row[col] = before;
    }
    row[last] = mean(up[last], down[last], right, before);
}

/// Computes four rows, of which row `k` is at column `front - LAG * k`: the row above it has
/// computed that column two fronts earlier, and the row below gets there two fronts later.
fn four_rows(up: &[f64], rows: [&mut [f64]; ROWS], down: &[f64], sides: [(f64, f64); ROWS]) {
    let cols = rows[0].len();
    let (up, down) = (&up[..cols], &down[..cols]);
    let mut rows = rows.map(|row| &mut row[..cols]);
    // All four rows are inside, and none at its last column.
    let inner = BEHIND..(cols - 1).max(BEHIND);
    for front in 0..inner.start {
        front_at_edge(up, &mut rows, down, sides, front);
    }
    if !inner.is_empty() {
        let [a, b, c, d] = &mut rows;
        // Cells to the left, and cells that the rows below need next, kept in registers, so that
        // no cell is read that was just written.
        let [mut p, mut q, mut r, mut s] = [a[5], b[3], c[1], sides[3].0];
        let [mut above_q, mut above_r, mut above_s] = [a[4], b[2], c[0]];
        for front in inner.clone() {
            let next = [
                mean(up[front], b[front], a[front + 1], p),
                mean(above_q, c[front - 2], b[front - 1], q),
                mean(above_r, d[front - 4], c[front - 3], r),
                mean(above_s, down[front - 6], d[front - 5], s),
            ];
            [above_q, above_r, above_s] = [p, q, r];
            [p, q, r, s] = next;
            (a[front], b[front - 2], c[front - 4], d[front - 6]) = (p, q, r, s);
        }
    }
    for front in inner.end..cols + BEHIND {
        front_at_edge(up, &mut rows, down, sides, front);
    }
}

/// Computes a front that does not lie inside all four rows.
fn front_at_edge(
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
