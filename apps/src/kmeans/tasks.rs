//! Tasks and a reduction: each block of points is assigned by a task, and the sums of all ranks are
//! reduced before the centres move.

use std::sync::Arc;

use talpf_runtime::Array;
use talpf_runtime::operator::Sum;

use super::{Problem, Solution, kernel, result};
use crate::Error;
use crate::partition::share;
use crate::run::{
    Allreduce, LOOKAHEAD, Machine, Observer, Part, Problem as _, RankContext, RankSpeed, RunInput,
    Step, Variant, declare_count, solve_on_ranks,
};

/// Number of the lane of the reduction.
const LANE: u8 = 1;

/// Moves the centres of `problem` with tasks on the ranks and workers of `machine`.
///
/// **Errors**: [`Error::Talpf`].
pub(super) fn solve(
    problem: &Problem,
    machine: Machine,
    variant: Variant,
    observer: &Observer,
) -> Result<Option<Solution>, Error> {
    // All ranks have the same centres.
    let assemble = |mut parts: Vec<Vec<f64>>| result(parts.swap_remove(0));
    solve_on_ranks(problem, machine, variant, observer, rank, assemble)
}

/// Runs the program of a rank.
async fn rank(ctx: RankContext, input: Arc<RunInput<Problem>>) -> Result<Part, Error> {
    let share = Share::new(&ctx, &input)?;
    let allreduce = Allreduce::new(&ctx, LANE, input.problem.sums(), Sum).await?;
    let mut lookahead = ctx.group().lookahead(LOOKAHEAD);

    ctx.barrier().await?;
    let started = ctx.now();
    for _ in 0..input.problem.steps() {
        lookahead.step().await?;
        share.spawn_assignments(&ctx)?;
        allreduce.spawn(ctx.group(), &share.sums.all())?;
        let advance = ctx.group().task("move").input(&share.sums.all());
        advance
            .inout(&share.centres.all())
            .spawn(|sums, mut centres| kernel::advance(&mut centres, &sums))?;
        declare_count(&ctx, &input.observer, Step::Spawned(&ctx), &share.centres.all())?;
    }
    ctx.group().wait().await?;
    let ended = ctx.now();

    let collect = ctx.group().task("collect").input(&share.centres.all());
    let result = collect.run(|centres| centres.to_vec())?.await?;
    Ok(Part { result, started, ended })
}

/// Points of one rank, and what all ranks have.
struct Share {
    /// A tile for each block.
    points: Array<f64>,
    centres: Array<f64>,
    /// Sums of each block, a tile for each.
    partial: Array<f64>,
    /// Sums of the rank, and then of all ranks.
    sums: Array<f64>,
    speed: RankSpeed,
}

impl Share {
    fn new(ctx: &RankContext, input: &RunInput<Problem>) -> Result<Self, Error> {
        let problem = input.problem;
        let points = kernel::points(share(problem.points(), ctx.rank(), ctx.size()));
        let tile = kernel::AXES * problem.block().min(problem.points());
        let blocks = points.len().div_ceil(tile);
        let (centres, sums) = (problem.first_centres(), problem.sums());
        let array = |cells: Vec<f64>, tile| Array::new(ctx.group(), cells, tile);
        let all_centres = centres.len();
        Ok(Self {
            points: array(points, tile)?,
            centres: array(centres, all_centres)?,
            partial: array(vec![0.0; blocks * sums], sums)?,
            sums: array(vec![0.0; sums], sums)?,
            speed: RankSpeed::of(ctx, input.machine),
        })
    }

    /// Spawns the tasks that sum up the points of a step.
    fn spawn_assignments(&self, ctx: &RankContext) -> Result<(), Error> {
        let blocks = self.partial.len() / self.sums.len();
        for block in 0..blocks {
            let speed = self.speed.clone();
            let task = ctx.group().task("assign").input(&self.points.tile(block));
            let task = task.input(&self.centres.all()).output(&self.partial.tile(block));
            task.spawn(move |points, centres, sums| {
                speed.compute(sums, |sums| {
                    sums.fill(0.0);
                    kernel::assign(&points, &centres, sums);
                });
            })?;
        }
        let task = ctx.group().task("sum").input(&self.partial.all()).output(&self.sums.all());
        Ok(task.spawn(|partial, mut sums| {
            sums.fill(0.0);
            let all = sums.len();
            partial.chunks(all).for_each(|partial| kernel::add(&mut sums, partial));
        })?)
    }
}
