//! The rows of one rank, and the tasks that compute them.

use std::iter;
use std::mem;
use std::ops::Range;

use talpf::{Context, MemorySlot};
use talpf_runtime::{JoinHandle, Matrix, Tiling, Token};

use super::LOOKAHEAD;
use crate::heat::Border;
use crate::jacobi::{Problem, kernel};
use crate::{Error, matrix};

/// Cells that a row of a strip has at least, where the band is that wide: 32 KiB, eight pages.
///
/// A task computes as many blocks side by side as that takes. Each row of a block is another
/// stretch of memory: the hardware's prefetch, which stays within a page, starts anew, so short
/// rows wait for the latency of every line. Square blocks of 256 reach 0.6 of the rate of whole
/// rows on a matrix of 4096 x 4096, rows of 2048 cells 0.9.
const STRIP_CELLS: usize = 4096;

/// The matrices of a rank, `(rows + 2) x (cols + 2)`, cut into strips.
pub(super) struct Band {
    rows: usize,
    cols: usize,
    tiling: Tiling,
    old: Field,
    new: Field,
    /// What the strips of a step read and its end writes, so that the end comes after them.
    steps: Vec<Token>,
}

/// A matrix that neighbours may reach.
pub(super) struct Field {
    pub(super) matrix: Matrix<f64>,
    pub(super) slot: MemorySlot<f64>,
}

impl Band {
    /// Makes the matrices of this rank, with the border in its place and zeros elsewhere.
    pub(super) async fn new(
        ctx: &Context,
        problem: &Problem,
        border: &Border,
    ) -> Result<Self, Error> {
        let rows = problem.band(ctx.rank().0 as usize, ctx.ranks() as usize);
        let (block, cols) = (problem.block(), problem.cols());
        // Halo rows and border columns are tiles of their own, so that a strip is one tile.
        let tiling = Tiling {
            rows: block,
            cols: block * STRIP_CELLS.div_ceil(block),
            first_rows: 1,
            first_cols: 1,
        };
        let field = async || {
            let mut cells = matrix::Matrix::zeros(rows.len() + 2, cols + 2);
            border.apply(rows.start, 0, cells.view_mut());
            let matrix = Matrix::new(ctx.group(), cells.into_cells(), cols + 2, tiling)?;
            let slot = ctx.register_global(&matrix).await?;
            Ok::<_, Error>(Field { matrix, slot })
        };
        let steps = iter::repeat_with(|| Token::new(ctx.group())).take(LOOKAHEAD);
        Ok(Self {
            rows: rows.len(),
            cols,
            tiling,
            old: field().await?,
            new: field().await?,
            steps: steps.collect::<Result<_, _>>()?,
        })
    }

    /// The matrix of the step that was spawned last.
    pub(super) fn newest(&self) -> &Field {
        &self.new
    }

    /// The one that takes turns with it.
    pub(super) fn other(&self) -> &Field {
        &self.old
    }

    /// Swaps old and new, for the next step.
    pub(super) fn swap(&mut self) {
        mem::swap(&mut self.old, &mut self.new);
    }

    /// The columns of every strip, without the border.
    pub(super) fn strip_cols(&self) -> impl Iterator<Item = Range<usize>> + Clone {
        cut(self.cols, self.tiling.cols)
    }

    /// Spawns a task for every strip: the top and bottom ones first, for which neighbours wait.
    /// The handle ends with the last of them. `step` counts modulo [`LOOKAHEAD`].
    pub(super) fn spawn_step(&self, ctx: &Context, step: usize) -> Result<JoinHandle<()>, Error> {
        let Self { old, new, .. } = self;
        let token = &self.steps[step];
        let mut strips = cut(self.rows, self.tiling.rows);
        let first = strips.next();
        let last = strips.next_back();
        for rows in first.into_iter().chain(last).chain(strips) {
            for cols in self.strip_cols() {
                let around = (rows.start - 1..rows.end + 1, cols.start - 1..cols.end + 1);
                ctx.group()
                    .task("jacobi")
                    .input(&old.matrix.region(around.0, around.1))
                    .output(&new.matrix.region(rows.clone(), cols))
                    .input(&token.region())
                    .spawn(|old, mut new, _| kernel::sweep(old.view(), new.view_mut()))?;
            }
        }
        let end = ctx.group().task("step").inline().inout(&token.region());
        Ok(end.run(|_| ())?)
    }

    /// Gives up the matrices for the rows of `old`, with their border columns.
    pub(super) async fn collect(self, ctx: &Context) -> Result<Vec<f64>, Error> {
        let Self { old, new, rows, .. } = self;
        ctx.deregister(new.slot)?;
        drop(new.matrix);
        let read = ctx
            .group()
            .task("collect")
            .input(&old.matrix.region(1..=rows, ..))
            .run(|cells| cells.view().iter().copied().collect())?;
        Ok(read.await?)
    }
}

/// Cuts `1..=len` into pieces of `size`; the last may be shorter.
fn cut(len: usize, size: usize) -> impl DoubleEndedIterator<Item = Range<usize>> + Clone {
    let pieces = (1..len + 1).step_by(size);
    pieces.map(move |start| start..(start + size).min(len + 1))
}
