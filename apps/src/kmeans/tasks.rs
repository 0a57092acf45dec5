//! Tasks and an exchange of sums: one program for all variants with ranks.
//!
//! A step has two parts: the tasks that assign the blocks of points and add up the sums of the rank,
//! with their exchange ([`exchange`]); and, once the sums of all ranks are here, the task that moves
//! the centres.

mod exchange;

use std::sync::Arc;

use talpf_runtime::{Array, Scope};

use self::exchange::SumExchange;
use super::{Problem, Solution, WORK, kernel, result};
use crate::partition::{pieces, share};
use crate::run::{
    LOOKAHEAD, Machine, Observer, Part, Problem as _, RankContext, RankSpeed, RunInput, Step,
    Steps, Variant, declare_count, solve_on_ranks, spawn_on,
};
use crate::{Error, memory};

/// Moves the centres of `problem` with tasks on the ranks and workers of `machine`.
///
/// **Errors**: [`Error::Talpf`], [`Error::Tampi`].
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
    let share = Share::new(&ctx, &input).await?;
    let steps = Steps { count: input.problem.steps(), unroll: 1, parts: 2 };

    ctx.barrier().await?;
    let started = ctx.now();
    let mut lookahead = ctx.group().lookahead(LOOKAHEAD);
    ctx.spawn_steps(input.machine, steps, &mut lookahead, |step, _, part| {
        if part == 0 {
            share.declare_assignments(step)?;
            return share.exchange.declare(step);
        }
        share.declare_move(step)?;
        declare_count(&ctx, &input.observer, step, &share.centres.all())
    })
    .await?;
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
    exchange: SumExchange,
    clusters: usize,
    speed: RankSpeed,
    /// `true` if bodies are executed.
    executes: bool,
}

impl Share {
    async fn new(ctx: &RankContext, input: &RunInput<Problem>) -> Result<Self, Error> {
        let (problem, executes) = (input.problem, input.machine.executes());
        let own = share(problem.points(), ctx.rank(), ctx.size());
        let tile = kernel::AXES * problem.block().min(problem.points());
        let blocks = pieces(own.clone(), problem.block()).count();
        let points = match executes {
            true => kernel::points(own),
            false => memory::untouched(kernel::AXES * own.len()),
        };
        let (centres, sums) = (problem.first_centres(), problem.sums());
        let all_centres = centres.len();
        let array = |cells: Vec<f64>, tile| Array::new(ctx.group(), cells, tile);
        Ok(Self {
            points: array(points, tile)?,
            centres: array(centres, all_centres)?,
            partial: array(vec![0.0; blocks * sums], sums)?,
            exchange: SumExchange::new(ctx, sums).await?,
            clusters: problem.clusters(),
            speed: RankSpeed::of(ctx, input),
            executes,
        })
    }

    /// Declares the tasks that sum up the points of a step.
    fn declare_assignments<'a>(&'a self, step: Step<'_, 'a>) -> Result<(), Error> {
        for block in 0..self.points.tiles() {
            let (points, core) = (self.points.tile(block), self.speed.core());
            let distances = points.len() / kernel::AXES * self.clusters;
            let task = step.task("assign").work(WORK, distances as u64).input(&points);
            let task = task.input(&self.centres.all()).output(&self.partial.tile(block));
            spawn_on!(core, task, |points, centres, sums| {
                sums.fill(0.0);
                kernel::assign(points, centres, sums);
            })?;
        }
        let task = step.task("sum").input(&self.partial.all()).output(&self.exchange.own());
        let executes = self.executes;
        Ok(task.spawn_borrowed(move |partial, sums| {
            if executes {
                sums.fill(0.0);
                let len = sums.len();
                partial.chunks(len).for_each(|partial| kernel::add(sums, partial));
            }
        })?)
    }

    /// Declares the task that moves the centres by the sums of all ranks.
    fn declare_move<'a>(&'a self, step: Step<'_, 'a>) -> Result<(), Error> {
        let task = step.task("move").input(&self.exchange.all()).inout(&self.centres.all());
        let executes = self.executes;
        Ok(task.spawn_borrowed(move |sums, centres| {
            if executes {
                kernel::advance(centres, sums);
            }
        })?)
    }
}
