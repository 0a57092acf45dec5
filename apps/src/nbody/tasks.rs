//! Tasks, and blocks of particles that go round a [`Ring`]: one program for all variants with ranks.
//!
//! In each hop of a step a rank spawns a task for each pair of one of its blocks and one of those
//! that it has. All tasks of one block add to its sums, so they are a chain. The last link moves the
//! block, and the ring starts again once all have moved.

use std::sync::Arc;

use talpf_runtime::{Matrix, Region, Scope, Tiling};

use super::{Problem, Solution, WORK, kernel};
use crate::Error;
use crate::partition::share;
use crate::run::{
    LOOKAHEAD, Machine, Observer, Part, RankContext, RankSpeed, Ring, RunInput, Shape, Step, Steps,
    Variant, declare_count, solve_on_ranks, spawn_on,
};

/// Moves the particles of `problem` with tasks on the ranks and workers of `machine`.
///
/// **Errors**: [`Error::Talpf`], [`Error::Tampi`].
pub(super) fn solve(
    problem: &Problem,
    machine: Machine,
    variant: Variant,
    observer: &Observer,
) -> Result<Option<Solution>, Error> {
    solve_on_ranks(problem, machine, variant, observer, rank, |parts| {
        if !machine.executes() {
            return problem.particles().clone();
        }
        let halves = parts.iter().map(|part| part.split_at(part.len() / 7 * 4));
        let (bodies, velocities): (Vec<_>, Vec<_>) = halves.unzip();
        problem.particles().moved(bodies.concat(), velocities.concat())
    })
}

/// The program of a rank.
async fn rank(ctx: RankContext, input: Arc<RunInput<Problem>>) -> Result<Part, Error> {
    let blocks = Blocks::new(&ctx, &input).await?;
    let steps = input.problem.steps();

    ctx.barrier().await?;
    let started = ctx.now();
    let mut lookahead = ctx.group().lookahead(LOOKAHEAD);
    let steps = Steps { count: steps, unroll: 1, parts: ctx.size() };
    ctx.spawn_steps(input.machine, steps, &mut lookahead, |step, _, hop| {
        let is_last = hop + 1 == ctx.size();
        if !is_last {
            blocks.ring.pass_on(hop, step)?;
        }
        blocks.declare_pulls(&ctx, hop, step)?;
        if is_last {
            blocks.declare_moves(step)?;
            declare_count(&ctx, &input.observer, step, &blocks.last())?;
        }
        Ok(())
    })
    .await?;
    ctx.group().wait().await?;
    let ended = ctx.now();

    Ok(Part { result: blocks.collect(&ctx).await?, started, ended })
}

/// The blocks of one rank, each a row of three matrices.
struct Blocks {
    ring: Ring,
    velocities: Matrix<f64>,
    sums: Matrix<f64>,
    speed: RankSpeed,
    priorities: bool,
    /// `true` if bodies are executed.
    executes: bool,
    /// Of all ranks together.
    blocks: usize,
    /// Of the rank that has the most, at most one less than twice the mean.
    pieces: usize,
    own: usize,
    /// Pairs of particles of two blocks.
    pairs: u64,
}

impl Blocks {
    async fn new(ctx: &RankContext, input: &RunInput<Problem>) -> Result<Self, Error> {
        let particles = input.problem.particles();
        let (blocks, ranks) = (particles.blocks(), input.machine.ranks());
        let mine = share(blocks, ctx.rank(), ranks);
        let (bodies, axes) = (4 * particles.block(), 3 * particles.block());
        let shape =
            Shape { pieces: blocks.div_ceil(ranks), rows: 1, cols: bodies, tile_cols: bodies };
        let own = particles.bodies()[mine.start * bodies..mine.end * bodies].to_vec();
        let velocities = particles.velocities()[mine.start * axes..mine.end * axes].to_vec();
        let (tiling, sums) = (Tiling::new(1, axes), kernel::LIMBS * axes);
        let zeros = vec![0.0; mine.len() * sums];
        Ok(Self {
            ring: Ring::new(ctx, input.machine, shape, own).await?,
            sums: Matrix::new(ctx.group(), zeros, sums, Tiling::new(1, sums))?,
            velocities: Matrix::new(ctx.group(), velocities, axes, tiling)?,
            speed: RankSpeed::of(ctx, input),
            priorities: input.problem.priorities(),
            executes: input.machine.executes(),
            blocks,
            pieces: shape.pieces,
            own: mine.len(),
            pairs: (particles.block() as u64).pow(2),
        })
    }

    /// Declares a task for each pair of an own block and one that is here in this hop.
    fn declare_pulls<'a>(
        &'a self,
        ctx: &RankContext,
        hop: usize,
        step: Step<'_, 'a>,
    ) -> Result<(), Error> {
        let (owner, sources) = self.ring.at(hop);
        for source in share(self.blocks, owner, ctx.size()).enumerate() {
            for target in 0..self.own {
                let core = self.speed.core();
                let task = step
                    .task("pull")
                    .work(WORK, self.pairs)
                    .priority(self.priority(hop, source.0))
                    .input(&self.ring.own().row(target, ..))
                    .input(&sources.row(source.0, ..))
                    .inout(&self.sums.row(target, ..));
                spawn_on!(core, task, |targets, sources, sums| {
                    kernel::pull(targets, sources, sums);
                })?;
            }
        }
        Ok(())
    }

    /// Declares a task for each own block that moves it.
    fn declare_moves<'a>(&'a self, step: Step<'_, 'a>) -> Result<(), Error> {
        for block in 0..self.own {
            let task = step
                .task("move")
                .priority(self.priority(0, 0))
                .inout(&self.ring.own().row(block, ..))
                .inout(&self.velocities.row(block, ..))
                .inout(&self.sums.row(block, ..));
            let executes = self.executes;
            task.spawn_borrowed(move |bodies, velocities, sums| {
                if executes {
                    kernel::advance(bodies, velocities, sums);
                }
            })?;
        }
        Ok(())
    }

    /// Returns the block that the task declared last in a step moves.
    fn last(&self) -> Region<'_, f64> {
        self.ring.own().row(self.own - 1, ..)
    }

    /// Links at the beginning of chains come first, so that all chains advance side by side.
    fn priority(&self, hop: usize, source: usize) -> i32 {
        let links_before = hop * self.pieces + source;
        if self.priorities { (2 * self.blocks - links_before) as i32 } else { 0 }
    }

    /// Gives up the blocks for their bodies, four numbers a particle, and then their velocities,
    /// three numbers each; none without execution.
    async fn collect(self, ctx: &RankContext) -> Result<Vec<f64>, Error> {
        let bodies = self.ring.own().region(..self.own, ..);
        let task = ctx.group().task("collect").input(&bodies).input(&self.velocities.all());
        let executes = self.executes;
        let read = task.run(move |bodies, velocities| {
            if !executes {
                return Vec::new();
            }
            bodies.view().iter().chain(velocities.view().iter()).copied().collect()
        })?;
        Ok(read.await?)
    }
}
