//! Tasks with atomics: each block of numbers is counted by a task, and added to bins by another.
//!
//! The rounds of a step are those of a lane of their own. Additions complete by themselves: the
//! task that issues them is never suspended, and its results are in use until they have arrived.
//! So a block is counted again, in the next step, while its additions of this one are under way.

use std::sync::Arc;

use talpf::{Context, Lane, MemorySlot, OpenRound, Rank};
use talpf_runtime::Array;

use super::{Problem, Solution, kernel};
use crate::partition::{pieces, share};
use crate::run::{
    LOOKAHEAD, Machine, Observer, Part, Problem as _, Protocol, RankContext, RankSpeed, RunInput,
    Step, Variant, declare_count, solve_on_ranks, spawn_once_on,
};
use crate::{Error, Matrix};

/// Number of the lane of the additions.
const LANE: u8 = 1;

/// Counts the numbers of `problem` with tasks on the ranks and workers of `machine`.
///
/// **Errors**: [`Error::Talpf`].
pub(super) fn solve(
    problem: &Problem,
    machine: Machine,
    variant: Variant,
    observer: &Observer,
) -> Result<Option<Solution>, Error> {
    let name = variant.name();
    let program = move |ctx: RankContext, input: Arc<RunInput<Problem>>| async move {
        match ctx.clone() {
            RankContext::OneSided(one_sided, protocol) => {
                rank(ctx, one_sided, protocol, input).await
            }
            RankContext::TwoSided(_) => {
                Err(Error::NoSuchVariant { app: "histogram", variant: name })
            }
        }
    };
    let assemble = |parts: Vec<Vec<f64>>| {
        let cells = parts.concat();
        let bins = cells.len();
        Matrix::from_cells(cells, bins)
    };
    solve_on_ranks(problem, machine, variant, observer, program, assemble)
}

/// Runs the program of a rank.
async fn rank(
    ctx: RankContext,
    one_sided: Context,
    protocol: Protocol,
    input: Arc<RunInput<Problem>>,
) -> Result<Part, Error> {
    let share = Share::new(&ctx, &one_sided, &input).await?;
    let mut lookahead = ctx.group().lookahead(LOOKAHEAD);

    ctx.barrier().await?;
    let started = ctx.now();
    for step in 0..input.problem.steps() {
        lookahead.step().await?;
        for block in 0..share.blocks {
            share.spawn_count(step, block)?;
            share.spawn_additions(block)?;
        }
        share.lane.sync(protocol.mode).window(&share.bins.all()).spawn()?;
        declare_count(&ctx, &input.observer, Step::Spawned(&ctx), &share.bins.all())?;
    }
    ctx.group().wait().await?;
    let ended = ctx.now();

    let collect = ctx.group().task("collect").input(&share.bins.all());
    let result = collect.run(|bins| bins.iter().map(|count| *count as f64).collect())?.await?;
    Ok(Part { result, started, ended })
}

/// Bins and blocks of numbers of one rank.
struct Share {
    problem: Problem,
    rank: usize,
    ranks: usize,
    /// Number of blocks.
    blocks: usize,
    lane: Lane,
    bins: Array<u64>,
    slot: MemorySlot<u64>,
    /// Counts of each block, or the bin of each of its numbers; a tile for each block.
    counted: Array<u64>,
    /// Results of the additions, each a tile.
    results: Array<u64>,
    speed: RankSpeed,
}

impl Share {
    async fn new(
        ctx: &RankContext,
        one_sided: &Context,
        input: &RunInput<Problem>,
    ) -> Result<Self, Error> {
        let (problem, rank, ranks) = (input.problem, ctx.rank(), ctx.size());
        let bins = share(problem.bins(), rank, ranks).len();
        let blocks = pieces(share(problem.numbers(), rank, ranks), problem.block()).len();
        let additions = problem.additions();
        // A rank without numbers has arrays of one element all the same.
        let most = (blocks * additions).max(1);
        one_sided.resize_message_queue(most)?;
        let array = |len: usize, tile| Array::new(ctx.group(), vec![0; len], tile);
        let (bins, results) = (array(bins, bins)?, array(most, 1)?);
        let slot = one_sided.register_global(&bins).await?;
        one_sided.register_local(&results)?;
        Ok(Self {
            problem,
            rank,
            ranks,
            blocks,
            lane: one_sided.lane(LANE)?,
            bins,
            slot,
            counted: array(most, additions)?,
            results,
            speed: RankSpeed::of(ctx, input),
        })
    }

    /// Spawns the task that counts a block of a step.
    fn spawn_count(&self, step: usize, block: usize) -> Result<(), Error> {
        let (problem, core) = (self.problem, self.speed.core());
        let numbers = share(problem.numbers(), self.rank, self.ranks);
        let start = numbers.start + block * problem.block();
        let numbers = start..numbers.end.min(start + problem.block());
        let task = self.lane.group().task("count").output(&self.counted.tile(block));
        Ok(spawn_once_on!(core, task, move |counted| {
            core.compute(counted, |counted| match problem.aggregates() {
                true => {
                    counted.fill(0);
                    kernel::count(step, numbers, counted);
                }
                false => {
                    // A bin that does not exist, where the last block has no number.
                    counted.fill(problem.bins() as u64);
                    kernel::find(step, numbers, problem.bins(), counted);
                }
            });
        })?)
    }

    /// Spawns the task that adds a block to the bins, wherever they are.
    fn spawn_additions(&self, block: usize) -> Result<(), Error> {
        let (problem, ranks, slot) = (self.problem, self.ranks, self.slot.clone());
        let round: OpenRound = self.lane.round();
        let additions = problem.additions();
        let results = block * additions..(block + 1) * additions;
        let task = self.lane.group().task("add").communicates().input(&self.counted.tile(block));
        let task = task.output(results.map(|number| self.results.tile(number)));
        Ok(task.spawn(move |counted, results| {
            let entries = counted.iter().enumerate().map(|(number, &entry)| {
                if problem.aggregates() { (number, entry) } else { (entry as usize, 1) }
            });
            for ((bin, count), result) in entries.zip(results) {
                if count > 0 && bin < problem.bins() {
                    let owner = owner(bin, problem.bins(), ranks);
                    let index = bin - share(problem.bins(), owner, ranks).start;
                    let target = slot.at(Rank(owner as u32), index);
                    drop(round.fetch_and_add(target, count, result));
                }
            }
        })?)
    }
}

/// Returns the rank that has a bin.
fn owner(bin: usize, bins: usize, ranks: usize) -> usize {
    ((bin + 1) * ranks).div_ceil(bins) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_of_a_bin_is_the_rank_whose_share_has_it() {
        for (bins, ranks) in [(1, 1), (7, 7), (100, 32), (4096, 3), (8, 5)] {
            for rank in 0..ranks {
                assert!(share(bins, rank, ranks).all(|bin| owner(bin, bins, ranks) == rank));
            }
        }
    }
}
