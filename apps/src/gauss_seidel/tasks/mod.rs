//! Tasks with exchange of outermost rows: one program for all variants with ranks.
//!
//! A rank computes step `t` of its band in superstep `2 t + rank`: the row above it is of the same
//! step, the row below it of the previous step, and both are one superstep old. So neighbours
//! alternate: in every superstep half of the ranks compute and send their outermost rows to those
//! that compute in the next, which have a window for them, or a receive.
//!
//! **talpf-default** ends a superstep with one sync of all ranks. A rank that does not compute
//! waits until the last of the others has computed: half of the ranks are idle at any time.
//!
//! **talpf-lanes** has a lane for each block column, and its supersteps are rounds of that lane. A
//! round ends for a rank as soon as the pieces of its neighbours over that column have arrived, so
//! a rank starts on the first column while its neighbours compute the next ones, and all ranks work
//! on different columns at the same time.
//!
//! **tampi** does the same with a message for each piece.
//!
//! Within a rank, blocks wait for the blocks around them by their regions.
//!
//! A replayed graph begins with the second step of the rank. From then on a step has two
//! supersteps: one in which both neighbours compute, and one in which this rank does.

mod exchange;

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use ndarray::Axis;
use talpf_runtime::{Matrix, Region, Scope};

use self::exchange::Exchange;
use super::kernel::{self, Ring};
use super::{Problem, Solution};
use crate::Error;
use crate::heat::{Border, collect_field};
use crate::partition::pieces;
use crate::run::{
    LOOKAHEAD, Machine, Observer, Pace, Part, RankContext, RunInput, Step, Variant, declare_count,
    solve_on_ranks,
};

/// Solves `problem` with tasks on the ranks and workers of `machine`.
///
/// **Errors**: [`Error::Talpf`], [`Error::Tampi`].
pub(super) fn solve(
    problem: &Problem,
    machine: Machine,
    variant: Variant,
    observer: &Observer,
) -> Result<Option<Solution>, Error> {
    let (border, parts) = (Arc::new(problem.border()), problem.decomposition(machine.ranks())?);
    let program = |ctx, input| rank(ctx, input, Arc::clone(&border));
    let assemble = |bands| problem.assemble(&parts, &border, bands);
    solve_on_ranks(problem, machine, variant, observer, program, assemble)
}

/// Runs the program of a rank.
async fn rank(
    ctx: RankContext,
    input: Arc<RunInput<Problem>>,
    border: Arc<Border>,
) -> Result<Part, Error> {
    let band = Band::new(&ctx, &input, &border).await?;

    ctx.barrier().await?;
    let started = Instant::now();
    let repeated = band.steps - 1;
    let supersteps = 2 * repeated + ctx.size();
    if input.machine.replays() {
        let (first, last) = (ctx.rank(), ctx.rank() + 2 * repeated);
        band.spawn(&ctx, &input.observer, 0..first + 1).await?;
        ctx.iterate(repeated, 1, |step, _| {
            let here = ctx.rank();
            let exchange = |computes: &dyn Fn(usize) -> bool| {
                band.exchange.declare(&band.field, computes, step)
            };
            exchange(&|rank| rank != here)?;
            band.declare_step(step)?;
            exchange(&|rank| rank == here)?;
            declare_count(&ctx, &input.observer, step, &band.last_row())
        })?;
        // A spawned sync belongs to the superstep that is open at that time.
        ctx.group().wait().await?;
        band.spawn(&ctx, &input.observer, last + 1..supersteps).await?;
    } else {
        band.spawn(&ctx, &input.observer, 0..supersteps).await?;
    }
    let ended = Instant::now();

    Ok(Part { result: collect_field(&ctx, band.field).await?, started, ended })
}

/// Rows of one rank.
struct Band {
    field: Matrix<f64>,
    exchange: Exchange,
    pace: Pace,
    steps: usize,
    block: usize,
    /// Columns of each block column, without the border.
    columns: Vec<Range<usize>>,
}

impl Band {
    async fn new(
        ctx: &RankContext,
        input: &RunInput<Problem>,
        border: &Border,
    ) -> Result<Self, Error> {
        let block = input.problem.block();
        let columns: Vec<_> = pieces(1..input.problem.cols() + 1, block).collect();
        let parts = input.problem.decomposition(ctx.size())?.in_pieces(block, block);
        let field = input.problem.field(ctx, &parts, border, (block, block))?;
        Ok(Self {
            exchange: Exchange::new(ctx, &parts, &field, columns.len()).await?,
            field,
            pace: Pace::of(ctx, input.machine),
            steps: input.problem.steps(),
            block,
            columns,
        })
    }

    /// Spawns the tasks of `supersteps` and waits for them.
    async fn spawn(
        &self,
        ctx: &RankContext,
        observer: &Observer,
        supersteps: Range<usize>,
    ) -> Result<(), Error> {
        let mut lookahead = ctx.group().lookahead(2 * LOOKAHEAD);
        for superstep in supersteps {
            lookahead.step().await?;
            let step = Step::Spawned(ctx);
            let computes = |rank| self.computes(rank, superstep);
            if computes(ctx.rank()) {
                self.declare_step(step)?;
                declare_count(ctx, observer, step, &self.last_row())?;
            }
            self.exchange.declare(&self.field, computes, step)?;
        }
        Ok(ctx.group().wait().await?)
    }

    /// Returns `true` if `rank` computes a step in a superstep.
    fn computes(&self, rank: usize, superstep: usize) -> bool {
        superstep.checked_sub(rank).is_some_and(|twice| twice % 2 == 0 && twice / 2 < self.steps)
    }

    /// Declares a task for every block, column by column, the order in which neighbours wait for
    /// them.
    fn declare_step<'a>(&'a self, step: Step<'_, 'a>) -> Result<(), Error> {
        let matrix = &self.field;
        let last = matrix.rows() - 1;
        for cols in &self.columns {
            for rows in pieces(1..last, self.block) {
                let (left, right) = (cols.start - 1..cols.start, cols.end..cols.end + 1);
                let pace = self.pace.clone();
                let task = step
                    .task("gauss-seidel")
                    .inout(&matrix.region(rows.clone(), cols.clone()))
                    .input(&matrix.row(rows.start - 1, cols.clone()))
                    .input(&matrix.row(rows.end, cols.clone()))
                    .input(&matrix.region(rows.clone(), left))
                    .input(&matrix.region(rows.clone(), right));
                task.spawn(move |block, above, below, left, right| {
                    let guards = (block, above, below, left, right);
                    pace.compute(guards, |(block, above, below, left, right)| {
                        let ring = Ring {
                            above,
                            below,
                            left: left.view().index_axis_move(Axis(1), 0),
                            right: right.view().index_axis_move(Axis(1), 0),
                        };
                        kernel::sweep(block.view_mut(), ring);
                    });
                })?;
            }
        }
        Ok(())
    }

    /// Returns the region of the task that is declared last in a step.
    fn last_row(&self) -> Region<'_, f64> {
        self.field.row(self.field.rows() - 2, self.columns[self.columns.len() - 1].clone())
    }
}
