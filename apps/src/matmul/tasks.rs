//! Tasks, and row blocks of `B` that go round a [`Ring`]: one program for all variants with ranks.
//!
//! In each hop of a multiplication a rank spawns a task for each block of its product and each row
//! block of `B` that it has: a link of the chain of products that the block is the sum of. `A` and
//! the product change roles after every multiplication.

use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use talpf_runtime::{Matrix, Tiling, Token};

use super::kernel::{self, Factor, Term};
use super::{Problem, Solution};
use crate::run::{
    Job, Machine, Observer, Pace, Part, RankContext, Ring, Shape, Step, Steps, Variant,
    solve_on_ranks,
};
use crate::share::{pieces, share};
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

/// The program of a rank.
async fn rank(ctx: RankContext, job: Arc<Job<Problem>>) -> Result<Part, Error> {
    let mut slices = Slices::new(&ctx, &job).await?;
    let mut steps = Steps::new(&ctx, &job.observer)?;

    ctx.barrier().await?;
    let started = Instant::now();
    for _ in 0..job.problem.iterations() {
        let step = steps.begin().await?;
        let mut syncs = Vec::new();
        for hop in 0..job.machine.ranks() {
            if hop + 1 < job.machine.ranks() {
                syncs.extend(slices.ring.pass_on(hop, Step::Spawned(&step))?);
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

/// The slices of one rank.
struct Slices {
    problem: Problem,
    /// `B`.
    ring: Ring,
    a: Matrix<f64>,
    c: Matrix<f64>,
    pace: Pace,
}

impl Slices {
    async fn new(ctx: &RankContext, job: &Job<Problem>) -> Result<Self, Error> {
        let problem = job.problem;
        let (size, block, ranks) = (problem.size(), problem.block(), job.machine.ranks());
        let rows = problem.extent(share(problem.blocks(), ctx.rank(), ranks));
        let shape = Shape {
            pieces: problem.blocks().div_ceil(ranks),
            rows: block.min(size),
            cols: size,
            tile_cols: block,
        };
        let b = kernel::initial(Factor::B, rows.clone(), 0..size).into_cells();
        let a = kernel::initial(Factor::A, rows.clone(), 0..size).into_cells();
        let tiling = Tiling::new(block, block);
        Ok(Self {
            problem,
            ring: Ring::new(ctx, shape, b).await?,
            c: Matrix::new(ctx.group(), vec![0.0; a.len()], size, tiling)?,
            a: Matrix::new(ctx.group(), a, size, tiling)?,
            pace: Pace::of(ctx, job.machine),
        })
    }

    /// Spawns a task for each block of the product and each row block that is here in this hop.
    fn spawn_products(&self, ctx: &RankContext, hop: usize, step: &Token) -> Result<(), Error> {
        let ranks = ctx.ranks();
        let (owner, b) = self.ring.at(hop);
        let here = share(self.problem.blocks(), owner, ranks);
        for block in here.clone() {
            let term = Term {
                is_first: hop == 0 && block == here.start,
                is_last: hop + 1 == ranks && block + 1 == here.end,
            };
            let depth = self.problem.extent(block..block + 1);
            let at = (block - here.start) * self.problem.block();
            let b_rows = at..at + depth.len();
            for rows in pieces(0..self.c.rows(), self.problem.block()) {
                for cols in pieces(0..self.problem.size(), self.problem.block()) {
                    self.spawn_product(ctx, b, [&rows, &cols, &depth, &b_rows], term, step)?;
                }
            }
        }
        Ok(())
    }

    fn spawn_product(
        &self,
        ctx: &RankContext,
        b: &Matrix<f64>,
        [rows, cols, depth, b_rows]: [&Range<usize>; 4],
        term: Term,
        step: &Token,
    ) -> Result<(), Error> {
        let pace = self.pace.clone();
        let task = ctx
            .group()
            .task("multiply")
            .input(&self.a.region(rows.clone(), depth.clone()))
            .input(&b.region(b_rows.clone(), cols.clone()))
            .inout(&self.c.region(rows.clone(), cols.clone()))
            .input(&step.region());
        Ok(task.spawn_async(async move |a, b, mut c, _step| {
            pace.compute(|| kernel::multiply(a.view(), b.view(), c.view_mut(), term)).await;
        })?)
    }

    /// Gives up the slices for the last product.
    async fn collect(self, ctx: &RankContext) -> Result<Vec<f64>, Error> {
        let task = ctx.group().task("collect").input(&self.a.all());
        let read = task.run(|cells| cells.view().iter().copied().collect())?;
        Ok(read.await?)
    }
}
