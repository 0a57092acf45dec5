//! Tasks with exchange of outermost rows: one program for all variants with ranks.
//!
//! A rank computes step `t` of its band in superstep `2 t + rank`: the row above it is of the same
//! step, the row below it of the previous step, and both are one superstep old. So neighbours
//! alternate: in every superstep half of the ranks compute and send their outermost rows to those
//! that compute in the next, which have a window for them, or a receive.
//!
//! **lpf** waits for all tasks of a superstep, then puts and ends it with one sync of all ranks.
//!
//! **talpf-default** ends a superstep with one sync of all ranks. A rank that does not compute
//! waits until the last of the others has computed: half of the ranks are idle at any time.
//!
//! **talpf-lanes** has a lane for each block column, and its supersteps are rounds of that lane. A
//! round ends for a rank as soon as the pieces of its neighbours over that column have arrived, so
//! a rank starts on the first column while its neighbours compute the next ones, and all ranks work
//! on different columns at the same time.
//!
//! **talpf-notify** has no rounds: a put of a piece notifies the neighbour of an id of that block column,
//! and a task there has the halo as the inbox of the put.
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

use ndarray::Axis;
use talpf_runtime::{In, Ix2, Lookahead, Matrix, Region, Scope};

use self::exchange::RowExchange;
use super::block::strips;
use super::kernel::{self, Ring};
use super::{Problem, Solution, WORK};
use crate::Error;
use crate::heat::{Border, Convergence, Residual, collect_field, largest_change};
use crate::partition::pieces;
use crate::run::{
    LOOKAHEAD, Machine, Observer, Part, RankContext, RankSpeed, RunInput, Step, Variant,
    declare_count, solve_on_ranks, spawn_on,
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
    problem.check_execution(machine)?;
    let (border, parts) = (Arc::new(problem.border()), problem.decomposition(machine.ranks())?);
    let program = |ctx, input| rank(ctx, input, Arc::clone(&border));
    let assemble = |bands| problem.temperatures(&parts, &border, machine, bands);
    solve_on_ranks(problem, machine, variant, observer, program, assemble)
}

/// Runs the program of a rank.
async fn rank(
    ctx: RankContext,
    input: Arc<RunInput<Problem>>,
    border: Arc<Border>,
) -> Result<Part, Error> {
    let band = Band::new(&ctx, &input, &border).await?;
    let mut periods = input.problem.periods();

    ctx.barrier().await?;
    let started = ctx.now();
    let mut lookahead = ctx.group().lookahead(2 * LOOKAHEAD);
    let mut superstep = 0;
    while let Some(period) = periods.begin() {
        let before = band.residual.of_period_before(&periods)?;
        let (mut steps, mut last) = (0..period.end, ctx.rank());
        if ctx.is_plain_bsp() {
            // All ranks end the period in the same superstep, as tasks are waited for in each, and
            // a reduction is of all ranks.
            (steps, last, superstep) = (period.clone(), ctx.size() - 1, 2 * period.start);
        }
        // After the last superstep of the period in which this rank, or any, computes.
        let end = 2 * period.end + last - 1;
        if input.machine.replays() {
            let mut repeats = period.len();
            if superstep == 0 {
                band.spawn(&mut lookahead, 0..ctx.rank() + 1, &steps).await?;
                ctx.group().wait().await?;
                repeats -= 1;
            }
            band.iterate(repeats)?;
        } else {
            band.spawn(&mut lookahead, superstep..end, &steps).await?;
        }
        superstep = end;
        if let Some(before) = before {
            periods.end_if_small(before.await?);
        }
    }
    if input.machine.replays() {
        // A spawned sync belongs to the superstep that is open at that time.
        ctx.group().wait().await?;
    }
    let supersteps = superstep..2 * (periods.steps() - 1) + ctx.size();
    band.spawn(&mut lookahead, supersteps, &(0..periods.steps())).await?;
    ctx.group().wait().await?;
    let convergence = band.residual.end(&periods).await?;
    let ended = ctx.now();

    let cells = collect_field(&ctx, input.machine, band.field).await?;
    Ok(Part { result: Convergence::append(convergence, cells), started, ended })
}

/// Rows of one rank.
struct Band<'r> {
    ctx: &'r RankContext,
    observer: &'r Observer,
    field: Matrix<f64>,
    exchange: RowExchange,
    residual: Residual,
    speed: RankSpeed,
    block: usize,
    /// Columns of each block column, without the border.
    columns: Vec<Range<usize>>,
}

impl<'r> Band<'r> {
    async fn new(
        ctx: &'r RankContext,
        input: &'r RunInput<Problem>,
        border: &Border,
    ) -> Result<Self, Error> {
        let block = input.problem.block();
        let columns: Vec<_> = strips(&input.problem).collect();
        let strip = (block, columns[0].len());
        let parts = input.problem.decomposition(ctx.size())?.in_pieces(strip.0, strip.1);
        let field = input.problem.field(ctx, input.machine, &parts, border, strip)?;
        let exchange = RowExchange::new(ctx, &parts, &field, columns.len()).await?;
        let rows = pieces(1..field.rows() - 1, block).count();
        let residual = Residual::new(ctx, &input.problem, rows * columns.len()).await?;
        let (observer, speed) = (&input.observer, RankSpeed::of(ctx, input));
        Ok(Self { ctx, observer, field, exchange, residual, speed, block, columns })
    }

    /// Spawns the tasks of `supersteps`, in which ranks compute those of `steps`.
    async fn spawn(
        &self,
        lookahead: &mut Lookahead,
        supersteps: Range<usize>,
        steps: &Range<usize>,
    ) -> Result<(), Error> {
        for superstep in supersteps {
            lookahead.step().await?;
            let step_of = |rank| {
                let twice = superstep.checked_sub(rank).filter(|twice| twice % 2 == 0)?;
                Some(twice / 2).filter(|step| steps.contains(step))
            };
            let computes = |rank| step_of(rank).is_some();
            let spawned = self.ctx.spawn_part(|step| {
                if let Some(number) = step_of(self.ctx.rank()) {
                    self.declare_step(step, number, steps.end - 1)?;
                }
                self.exchange.declare(computes, step)
            });
            spawned.await?;
        }
        Ok(())
    }

    /// Declares a step after the first, to be replayed `steps` times: a superstep in which both
    /// neighbours compute, and one in which this rank does.
    fn iterate(&self, steps: usize) -> Result<(), Error> {
        let here = self.ctx.rank();
        self.ctx.iterate(steps, 1, |step, number| {
            self.exchange.declare(|rank| rank != here, step)?;
            self.declare_step(step, number, steps - 1)?;
            self.exchange.declare(|rank| rank == here, step)
        })
    }

    /// Declares a task for every strip, row by row, and the count of the step. Workers of a replayed
    /// graph get tasks that are declared one after another. With whole rows of strips they share few
    /// lines of the cache; with columns, one for each row of cells. If it is the step `last` of a
    /// period, each task computes its largest change.
    fn declare_step<'a>(
        &'a self,
        step: Step<'_, 'a>,
        number: usize,
        last: usize,
    ) -> Result<(), Error> {
        let matrix = &self.field;
        let checked = self.residual.in_step(step, number, last);
        let mut blocks = 0..;
        for rows in pieces(1..matrix.rows() - 1, self.block) {
            for cols in self.columns.iter().cloned() {
                let (left, right) = (cols.start - 1..cols.start, cols.end..cols.end + 1);
                let core = self.speed.core();
                let task = step
                    .task("gauss-seidel")
                    .work(WORK, (rows.len() * cols.len()) as u64)
                    .inout(&matrix.region(rows.clone(), cols.clone()))
                    .input(&matrix.row(rows.start - 1, cols.clone()))
                    .input(&matrix.row(rows.end, cols.clone()))
                    .input(&matrix.region(rows.clone(), left))
                    .input(&matrix.region(rows.clone(), right));
                let Some((checked, block)) = checked.zip(blocks.next()) else {
                    spawn_on!(core, task, |block, above, below, left, right| {
                        kernel::sweep(block.view_mut(), ring(above, below, left, right));
                    })?;
                    continue;
                };
                let is_checked = checked.condition();
                let task = task.output(&checked.change(block));
                spawn_on!(core, task, |block, above, below, left, right, change| {
                    let before = is_checked().then(|| block.view().to_owned());
                    kernel::sweep(block.view_mut(), ring(above, below, left, right));
                    if let Some(before) = before {
                        change[0] = largest_change(before.view(), block.view());
                    }
                })?;
            }
        }
        declare_count(self.ctx, self.observer, step, &self.last_row())
    }

    /// Returns the region of the task that is declared last in a step.
    fn last_row(&self) -> Region<'_, f64> {
        self.field.row(self.field.rows() - 2, self.columns[self.columns.len() - 1].clone())
    }
}

/// Returns the cells around a block.
fn ring<'a>(
    above: &'a In<f64>,
    below: &'a In<f64>,
    left: &'a In<f64, Ix2>,
    right: &'a In<f64, Ix2>,
) -> Ring<'a> {
    let column = |side: &'a In<f64, Ix2>| side.view().index_axis_move(Axis(1), 0);
    Ring { above, below, left: column(left), right: column(right) }
}
