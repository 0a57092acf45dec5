//! Tasks with row blocks of `B` that go round a [`Ring`]: one program for all variants with ranks.
//!
//! In each hop of a multiplication a rank spawns a task for each row block of its product and each
//! row block of `B` that it has. The tasks of one row block of the product are a chain, which sums
//! it up. `A` and the product swap roles after every multiplication.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use ndarray::s;
use talpf_runtime::{Matrix, Tiling, Token};

use super::kernel::{self, Factor, Term};
use super::{Problem, Solution, panels};
use crate::partition::{pieces, share};
use crate::run::{
    Machine, Observer, Pace, Part, RankContext, Ring, RunInput, Shape, Step, Steps, Variant,
    solve_on_ranks,
};
use crate::{Error, matrix};

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
    let mut slices = Slices::new(&ctx, &input).await?;
    let mut steps = Steps::new(&ctx, &input.observer)?;

    ctx.barrier().await?;
    let started = Instant::now();
    for _ in 0..input.problem.iterations() {
        let step = steps.begin().await?;
        let mut syncs = Vec::new();
        for hop in 0..input.machine.ranks() {
            if hop + 1 < input.machine.ranks() {
                syncs.extend(slices.ring.pass_on(hop, Step::Spawned(&ctx, &step))?);
            }
            slices.spawn_products(&ctx, hop, &step)?;
        }
        steps.end(&ctx, syncs)?;
        mem::swap(&mut slices.a, &mut slices.c);
    }
    steps.finish(&ctx).await?;
    let ended = Instant::now();

    Ok(Part { result: slices.collect(&ctx).await?, started, ended })
}

/// Slices of one rank.
struct Slices {
    problem: Problem,
    /// Packed row blocks of `B`, each a row of the ring's matrix.
    ring: Ring,
    a: Matrix<f64>,
    c: Matrix<f64>,
    pace: Pace,
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
        let mut b = Vec::with_capacity(shape.pieces * packed);
        for (place, block) in mine.clone().enumerate() {
            b.resize(place * packed, 0.0);
            let rows = problem.extent(block..block + 1);
            b.extend(panels::pack(kernel::initial(Factor::B, rows, 0..size).view()));
        }
        let a = kernel::initial(Factor::A, problem.extent(mine), 0..size);
        let c = matrix::Matrix::zeros(a.rows(), size);
        let tiling = Tiling::new(block, size);
        Ok(Self {
            problem,
            ring: Ring::new(ctx, shape, b).await?,
            c: Matrix::new(ctx.group(), c.into_cells(), size, tiling)?,
            a: Matrix::new(ctx.group(), a.into_cells(), size, tiling)?,
            pace: Pace::of(ctx, input.machine),
        })
    }

    /// Spawns a task for each row block of the product and each row block of `B` that is here in
    /// this hop.
    fn spawn_products(&self, ctx: &RankContext, hop: usize, step: &Token) -> Result<(), Error> {
        let (ranks, size) = (ctx.size(), self.problem.size());
        let (owner, b) = self.ring.at(hop);
        let here = share(self.problem.blocks(), owner, ranks);
        for (place, block) in here.clone().enumerate() {
            let term = Term {
                is_first: hop == 0 && place == 0,
                is_last: hop + 1 == ranks && block + 1 == here.end,
            };
            let depth = self.problem.extent(block..block + 1);
            for rows in pieces(0..self.c.rows(), self.problem.block()) {
                let (pace, depth) = (self.pace.clone(), depth.clone());
                let task = ctx
                    .group()
                    .task("multiply")
                    .input(&self.a.region(rows.clone(), ..))
                    .input(&b.row(place, ..panels::len(depth.len(), size)))
                    .inout(&self.c.region(rows, ..))
                    .input(&step.region());
                task.spawn(move |a, b, c, step| {
                    pace.compute((a, b, c, step), |(a, b, c, _)| {
                        let a = a.view().slice_move(s![.., depth]);
                        kernel::multiply(a, b, c.view_mut(), term);
                    });
                })?;
            }
        }
        Ok(())
    }

    /// Converts the slices into the last product.
    async fn collect(self, ctx: &RankContext) -> Result<Vec<f64>, Error> {
        let task = ctx.group().task("collect").input(&self.a.all());
        let read = task.run(|cells| cells.view().iter().copied().collect())?;
        Ok(read.await?)
    }
}
