//! Tasks with row blocks of `B` that go round a [`Ring`]: one program for all variants with ranks.
//!
//! In each hop of a multiplication a rank spawns a task for each row block of its product and each
//! row block of `B` that it has. The tasks of one row block of the product are a chain, which sums
//! it up. `A` and the product swap roles after every multiplication.

use std::sync::Arc;

use ndarray::s;
use talpf_runtime::{Ix2, Matrix, Region, Scope, Tiling};

use super::kernel::{self, Factor, Term};
use super::{Problem, Solution, WORK, panels};
use crate::partition::{pieces, share};
use crate::run::{
    LOOKAHEAD, Machine, Observer, Part, RankContext, RankSpeed, Ring, RunInput, Shape, Step, Steps,
    Variant, declare_count, solve_on_ranks, spawn_on,
};
use crate::{Error, matrix, memory};

/// Multiplies the matrices of `problem` with tasks on the ranks and workers of `machine`.
///
/// **Errors**: [`Error::Talpf`], [`Error::Tampi`].
pub(super) fn solve(
    problem: &Problem,
    machine: Machine,
    variant: Variant,
    observer: &Observer,
) -> Result<Option<Solution>, Error> {
    solve_on_ranks(problem, machine, variant, observer, rank, |parts| {
        matrix::Matrix::from_cells(parts.concat(), problem.size())
    })
}

/// Runs the program of a rank.
async fn rank(ctx: RankContext, input: Arc<RunInput<Problem>>) -> Result<Part, Error> {
    let slices = Slices::new(&ctx, &input).await?;
    let steps = input.problem.iterations();

    ctx.barrier().await?;
    let started = ctx.now();
    let mut lookahead = ctx.group().lookahead(LOOKAHEAD);
    let repeated = Steps { count: steps, unroll: 2, parts: ctx.size() };
    ctx.spawn_steps(input.machine, repeated, &mut lookahead, |step, number, hop| {
        let is_last = hop + 1 == ctx.size();
        if !is_last {
            slices.ring.pass_on(hop, step)?;
        }
        slices.declare_products(&ctx, hop, step, number)?;
        if is_last {
            declare_count(&ctx, &input.observer, step, &slices.last(number))?;
        }
        Ok(())
    })
    .await?;
    ctx.group().wait().await?;
    let ended = ctx.now();

    let result = slices.collect(&ctx, input.machine, steps).await?;
    Ok(Part { result, started, ended })
}

/// Slices of one rank.
struct Slices {
    problem: Problem,
    /// Packed row blocks of `B`, each a row of the ring's matrix.
    ring: Ring,
    /// The left factor of even multiplications, which is the product of odd ones, and the other.
    factors: [Matrix<f64>; 2],
    speed: RankSpeed,
}

impl Slices {
    async fn new(ctx: &RankContext, input: &RunInput<Problem>) -> Result<Self, Error> {
        let problem = input.problem;
        let (size, ranks) = (problem.size(), input.machine.ranks());
        let block = problem.block().min(size);
        let mine = share(problem.blocks(), ctx.rank(), ranks);
        let packed = panels::len(block, size);
        let shape = Shape {
            pieces: problem.blocks().div_ceil(ranks),
            rows: 1,
            cols: packed,
            tile_cols: packed,
        };
        let rows = problem.extent(mine.clone());
        let (mut b, a, c);
        if input.machine.executes() {
            b = Vec::with_capacity(shape.pieces * packed);
            for (place, block) in mine.enumerate() {
                b.resize(place * packed, 0.0);
                let rows = problem.extent(block..block + 1);
                b.extend(panels::pack(kernel::initial(Factor::B, rows, 0..size).view()));
            }
            c = matrix::Matrix::zeros(rows.len(), size).into_cells();
            a = kernel::initial(Factor::A, rows, 0..size).into_cells();
        } else {
            b = Vec::new();
            [a, c] = [0, 1].map(|_| memory::untouched(rows.len() * size));
        }
        let tiling = Tiling::new(block, size);
        Ok(Self {
            problem,
            ring: Ring::new(ctx, input.machine, shape, b).await?,
            factors: [
                Matrix::new(ctx.group(), a, size, tiling)?,
                Matrix::new(ctx.group(), c, size, tiling)?,
            ],
            speed: RankSpeed::of(ctx, input),
        })
    }

    /// Declares a task for each row block of the product and each row block of `B` that is here in
    /// this hop.
    fn declare_products<'a>(
        &'a self,
        ctx: &RankContext,
        hop: usize,
        step: Step<'_, 'a>,
        number: usize,
    ) -> Result<(), Error> {
        let (ranks, size) = (ctx.size(), self.problem.size());
        let (factor, product) = (&self.factors[number % 2], &self.factors[(number + 1) % 2]);
        let (owner, b) = self.ring.at(hop);
        let here = share(self.problem.blocks(), owner, ranks);
        for (place, block) in here.clone().enumerate() {
            let term = Term {
                is_first: hop == 0 && place == 0,
                is_last: hop + 1 == ranks && block + 1 == here.end,
            };
            let depth = self.problem.extent(block..block + 1);
            for rows in pieces(0..product.rows(), self.problem.block()) {
                let (core, depth) = (self.speed.core(), depth.clone());
                let task = step
                    .task("multiply")
                    .work(WORK, (rows.len() * depth.len() * size) as u64)
                    .input(&factor.region(rows.clone(), ..))
                    .input(&b.row(place, ..panels::len(depth.len(), size)))
                    .inout(&product.region(rows, ..));
                spawn_on!(core, task, |a, b, c| {
                    let a = a.view().slice_move(s![.., depth.clone()]);
                    kernel::multiply(a, b, c.view_mut(), term);
                })?;
            }
        }
        Ok(())
    }

    /// Returns the region of the task that is declared last in a step.
    fn last(&self, number: usize) -> Region<'_, f64, Ix2> {
        let product = &self.factors[(number + 1) % 2];
        let rows = pieces(0..product.rows(), self.problem.block()).last().unwrap_or_default();
        product.region(rows, ..)
    }

    /// Converts the slices into the product of multiplication `steps - 1`; into nothing without
    /// execution.
    async fn collect(
        self,
        ctx: &RankContext,
        machine: Machine,
        steps: usize,
    ) -> Result<Vec<f64>, Error> {
        let task = ctx.group().task("collect").input(&self.factors[steps % 2].all());
        let read = task.run(move |cells| match machine.executes() {
            true => cells.view().iter().copied().collect(),
            false => Vec::new(),
        })?;
        Ok(read.await?)
    }
}
