//! Tasks, and blocks of particles that go round a [`Ring`]: one program for all variants with ranks.
//!
//! In each hop of a step a rank spawns a task for each pair of one of its blocks and one of those
//! that it has. All tasks of one block add to its sums, so they are a chain. The last link moves the
//! block, and the ring starts again once all have moved.

use std::sync::Arc;
use std::time::Instant;

use talpf_runtime::{Matrix, Tiling, Token};

use super::{Problem, Solution, kernel};
use crate::Error;
use crate::run::{
    Communication, Machine, Observer, Pace, Part, RankContext, Ring, Shape, Steps, on_ranks,
};
use crate::share::share;

/// Moves the particles of `problem` with tasks on the ranks and workers of `machine`.
///
/// **Errors**: [`Error::Talpf`], [`Error::Tampi`].
pub(super) fn solve(
    problem: &Problem,
    machine: Machine,
    communication: Communication,
    observer: &Observer,
) -> Result<Option<Solution>, Error> {
    let (problem, observer) = (problem.clone(), observer.clone());
    let job = Arc::new(Job { problem, machine, observer });
    let program = |ctx| rank(ctx, Arc::clone(&job));
    let Some((parts, seconds)) = on_ranks(machine, communication, &job.observer, program)? else {
        return Ok(None);
    };
    let halves = parts.iter().map(|part| part.split_at(part.len() / 7 * 4));
    let (bodies, velocities): (Vec<_>, Vec<_>) = halves.unzip();
    let result = job.problem.particles().moved(bodies.concat(), velocities.concat());
    Ok(Some(Solution { result, seconds, machine }))
}

/// What is the same for all ranks.
struct Job {
    problem: Problem,
    machine: Machine,
    observer: Observer,
}

/// The program of a rank.
async fn rank(ctx: RankContext, job: Arc<Job>) -> Result<Part, Error> {
    let blocks = Blocks::new(&ctx, &job).await?;
    let mut steps = Steps::new(&ctx, &job.observer)?;

    ctx.barrier().await?;
    let started = Instant::now();
    for _ in 0..job.problem.steps() {
        let step = steps.begin().await?;
        let mut syncs = Vec::new();
        for hop in 0..job.machine.ranks() {
            if hop + 1 < job.machine.ranks() {
                syncs.extend(blocks.ring.pass_on(hop)?);
            }
            blocks.spawn_pulls(&ctx, hop, &step)?;
        }
        blocks.spawn_moves(&ctx, &step)?;
        steps.end(&ctx, syncs)?;
    }
    steps.finish(&ctx).await?;
    let ended = Instant::now();

    Ok(Part { result: blocks.collect(&ctx).await?, started, ended })
}

/// The blocks of one rank, each a row of three matrices.
struct Blocks {
    ring: Ring,
    velocities: Matrix<f64>,
    sums: Matrix<i128>,
    pace: Pace,
    priorities: bool,
    /// Of all ranks together.
    blocks: usize,
    /// Of the rank that has the most, at most one less than twice the mean.
    pieces: usize,
    own: usize,
}

impl Blocks {
    async fn new(ctx: &RankContext, job: &Job) -> Result<Self, Error> {
        let particles = job.problem.particles();
        let (blocks, ranks) = (particles.blocks(), job.machine.ranks());
        let mine = share(blocks, ctx.rank(), ranks);
        let (bodies, axes) = (4 * particles.block(), 3 * particles.block());
        let shape =
            Shape { pieces: blocks.div_ceil(ranks), rows: 1, cols: bodies, tile_cols: bodies };
        let own = particles.bodies()[mine.start * bodies..mine.end * bodies].to_vec();
        let velocities = particles.velocities()[mine.start * axes..mine.end * axes].to_vec();
        let tiling = Tiling { cols: axes, ..Tiling::default() };
        Ok(Self {
            ring: Ring::new(ctx, shape, own).await?,
            sums: Matrix::new(ctx.group(), vec![0; velocities.len()], axes, tiling)?,
            velocities: Matrix::new(ctx.group(), velocities, axes, tiling)?,
            pace: Pace::of(ctx, job.machine),
            priorities: job.problem.priorities(),
            blocks,
            pieces: shape.pieces,
            own: mine.len(),
        })
    }

    /// Spawns a task for each pair of an own block and one that is here in this hop.
    fn spawn_pulls(&self, ctx: &RankContext, hop: usize, step: &Token) -> Result<(), Error> {
        let (owner, sources) = self.ring.at(hop);
        for source in share(self.blocks, owner, ctx.ranks()).enumerate() {
            for target in 0..self.own {
                let pace = self.pace.clone();
                ctx.group()
                    .task("pull")
                    .priority(self.priority(hop, source.0))
                    .input(&self.ring.own().row(target, ..))
                    .input(&sources.row(source.0, ..))
                    .inout(&self.sums.row(target, ..))
                    .input(&step.region())
                    .spawn_async(async move |targets, sources, mut sums, _step| {
                        pace.compute(|| kernel::pull(&targets, &sources, &mut sums)).await;
                    })?;
            }
        }
        Ok(())
    }

    /// Spawns a task for each own block that moves it.
    fn spawn_moves(&self, ctx: &RankContext, step: &Token) -> Result<(), Error> {
        for block in 0..self.own {
            ctx.group()
                .task("move")
                .priority(self.priority(0, 0))
                .inout(&self.ring.own().row(block, ..))
                .inout(&self.velocities.row(block, ..))
                .inout(&self.sums.row(block, ..))
                .input(&step.region())
                .spawn(|mut bodies, mut velocities, mut sums, _step| {
                    kernel::advance(&mut bodies, &mut velocities, &mut sums);
                })?;
        }
        Ok(())
    }

    /// Links at the beginning of chains come first, so that all chains advance side by side.
    fn priority(&self, hop: usize, source: usize) -> i32 {
        let links_before = hop * self.pieces + source;
        if self.priorities { (2 * self.blocks - links_before) as i32 } else { 0 }
    }

    /// Gives up the blocks for their bodies, four numbers a particle, and then their velocities,
    /// three numbers each.
    async fn collect(self, ctx: &RankContext) -> Result<Vec<f64>, Error> {
        let bodies = self.ring.own().region(..self.own, ..);
        let task = ctx.group().task("collect").input(&bodies).input(&self.velocities.all());
        let read = task.run(|bodies, velocities| {
            bodies.view().iter().chain(velocities.view().iter()).copied().collect()
        })?;
        Ok(read.await?)
    }
}
