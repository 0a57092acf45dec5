//! The rows of one rank, and the tasks that compute them.

use std::mem;
use std::ops::Range;

use talpf_runtime::{Matrix, Token};

use crate::Error;
use crate::heat::{Border, collect_field};
use crate::jacobi::{Problem, kernel};
use crate::run::{Pace, RankContext};
use crate::share::pieces;

/// Cells that a row of a strip has at least, where the band is that wide: 32 KiB, eight pages.
///
/// A task computes as many blocks side by side as that takes. Each row of a block is another
/// stretch of memory: the hardware's prefetch, which stays within a page, starts anew, so short
/// rows wait for the latency of every line. Square blocks of 256 reach 0.6 of the rate of whole
/// rows on a matrix of 4096 x 4096, rows of 2048 cells 0.9.
const STRIP_CELLS: usize = 4096;

/// The matrices of a rank, cut into strips.
pub(super) struct Band {
    rows: usize,
    cols: usize,
    /// Rows and columns of a strip.
    strip: (usize, usize),
    old: Matrix<f64>,
    new: Matrix<f64>,
}

impl Band {
    pub(super) fn new(
        ctx: &RankContext,
        problem: &Problem,
        border: &Border,
    ) -> Result<Self, Error> {
        let block = problem.block();
        let strip = (block, block * STRIP_CELLS.div_ceil(block));
        let old = problem.field(ctx, border, strip)?;
        let new = problem.field(ctx, border, strip)?;
        Ok(Self { rows: old.rows() - 2, cols: problem.cols(), strip, old, new })
    }

    /// The matrix of the step that was spawned last.
    pub(super) fn newest(&self) -> &Matrix<f64> {
        &self.new
    }

    /// The one that takes turns with it.
    pub(super) fn other(&self) -> &Matrix<f64> {
        &self.old
    }

    /// Swaps old and new, for the next step.
    pub(super) fn swap(&mut self) {
        mem::swap(&mut self.old, &mut self.new);
    }

    /// The columns of every strip, without the border.
    pub(super) fn strip_cols(&self) -> impl Iterator<Item = Range<usize>> + Clone {
        pieces(1..self.cols + 1, self.strip.1)
    }

    /// Spawns a task for every strip: the top and bottom ones first, for which neighbours wait.
    pub(super) fn spawn_step(
        &self,
        ctx: &RankContext,
        step: &Token,
        pace: &Pace,
    ) -> Result<(), Error> {
        let Self { old, new, .. } = self;
        let mut strips = pieces(1..self.rows + 1, self.strip.0);
        let first = strips.next();
        let last = strips.next_back();
        for rows in first.into_iter().chain(last).chain(strips) {
            for cols in self.strip_cols() {
                let around = (rows.start - 1..rows.end + 1, cols.start - 1..cols.end + 1);
                let pace = pace.clone();
                ctx.group()
                    .task("jacobi")
                    .input(&old.region(around.0, around.1))
                    .output(&new.region(rows.clone(), cols))
                    .input(&step.region())
                    .spawn_async(async move |old, mut new, _step| {
                        pace.compute(|| kernel::sweep(old.view(), new.view_mut())).await;
                    })?;
            }
        }
        Ok(())
    }

    /// Gives up the matrices for the rows of `old`, with their border columns.
    pub(super) async fn collect(self, ctx: &RankContext) -> Result<Vec<f64>, Error> {
        drop(self.new);
        collect_field(ctx, self.old).await
    }
}
