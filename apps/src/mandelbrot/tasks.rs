//! Tasks on ranks: the best static distribution of the pieces, or a master that gives them out.

use std::cmp::Reverse;
use std::sync::Arc;

use talpf_runtime::Array;

use super::{Problem, Solution, WORK, queue, result};
use crate::Error;
use crate::run::{
    LOOKAHEAD, Machine, Observer, Part, Problem as _, RankContext, RankSpeed, RunInput, Step,
    Variant, declare_count, solve_on_ranks, spawn_once_on,
};

/// Counts the pieces of `problem` with tasks on the ranks and workers of `machine`.
///
/// **Errors**: [`Error::Talpf`].
pub(super) fn solve(
    problem: &Problem,
    machine: Machine,
    variant: Variant,
    observer: &Observer,
) -> Result<Option<Solution>, Error> {
    // What a rank has not counted is 0 there.
    let assemble = |parts: Vec<Vec<f64>>| {
        let mut counts = vec![0.0; parts[0].len()];
        for part in parts {
            counts.iter_mut().zip(part).for_each(|(count, more)| *count += more);
        }
        result(counts)
    };
    let known = Arc::new(Known::of(problem, machine, variant));
    let program = move |ctx: RankContext, input: Arc<RunInput<Problem>>| {
        let known = Arc::clone(&known);
        async move {
            match ctx.clone() {
                RankContext::OneSided(one_sided, _) if variant == Variant::TalpfQueue => {
                    queue::rank(ctx, one_sided, input, known).await
                }
                _ => rank(ctx, input, &known).await,
            }
        }
    };
    solve_on_ranks(problem, machine, variant, observer, program, assemble)
}

/// Numbers that are found before a run, and not in its time: nobody knows the work of a piece before
/// it was computed.
pub(super) struct Known {
    /// Counts of the pieces of each step, if a static distribution or virtual time needs them.
    counts: Vec<Vec<u64>>,
    /// Pieces of each rank in each step, with a static distribution.
    shares: Vec<Vec<Vec<usize>>>,
}

impl Known {
    fn of(problem: &Problem, machine: Machine, variant: Variant) -> Self {
        let is_static = variant != Variant::TalpfQueue;
        let is_needed = is_static || machine.simulation().is_some();
        let counts_of = |step| (0..problem.pieces()).map(move |piece| problem.count(step, piece));
        let steps = (0..problem.steps()).filter(|_| is_needed);
        let counts: Vec<Vec<u64>> = steps.map(|step| counts_of(step).collect()).collect();
        let distributed = counts.iter().filter(|_| is_static);
        let shares = distributed.map(|counts| distribute(counts, machine.ranks())).collect();
        Self { counts, shares }
    }

    /// Returns the work of a piece in virtual time, which alone takes it into account.
    pub(super) fn work(&self, step: usize, piece: usize) -> u64 {
        self.counts.get(step).map_or(0, |counts| counts[piece])
    }
}

/// Runs the program of a rank that has its pieces of all steps from the start.
async fn rank(
    ctx: RankContext,
    input: Arc<RunInput<Problem>>,
    known: &Known,
) -> Result<Part, Error> {
    let problem = input.problem;
    let counts = Array::new(ctx.group(), vec![0.0; problem.pieces()], 1)?;
    let speed = RankSpeed::of(&ctx, &input);
    let mut lookahead = ctx.group().lookahead(LOOKAHEAD);

    ctx.barrier().await?;
    let started = ctx.now();
    for (step, shares) in known.shares.iter().enumerate() {
        lookahead.step().await?;
        for &piece in &shares[ctx.rank()] {
            let core = speed.core();
            let task = ctx.group().task("rows").work(WORK, known.work(step, piece));
            spawn_once_on!(core, task.inout(&counts.tile(piece)), move |count| {
                core.compute(count, |count| count[0] += problem.count(step, piece) as f64);
            })?;
        }
        declare_count(&ctx, &input.observer, Step::Spawned(&ctx), &counts.all())?;
    }
    ctx.group().wait().await?;
    ctx.barrier().await?;
    let ended = ctx.now();

    let collect = ctx.group().task("collect").input(&counts.all());
    let result = collect.run(|counts| counts.to_vec())?.await?;
    Ok(Part { result, started, ended })
}

/// Distributes the pieces of a step by their counts: the largest goes to the rank that has the least so
/// far, then the next one. Returns the pieces of each rank.
fn distribute(counts: &[u64], ranks: usize) -> Vec<Vec<usize>> {
    let mut pieces: Vec<usize> = (0..counts.len()).collect();
    pieces.sort_by_key(|piece| Reverse(counts[*piece]));
    let mut given = vec![(0, Vec::new()); ranks];
    for piece in pieces {
        if let Some((sum, own)) = given.iter_mut().min_by_key(|(sum, _)| *sum) {
            *sum += counts[piece];
            own.push(piece);
        }
    }
    given.into_iter().map(|(_, own)| own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_is_even_and_has_all_pieces() {
        let counts = [7, 5, 6, 2, 9, 3];
        assert_eq!(distribute(&counts, 2), [vec![4, 1, 3], vec![0, 2, 5]]);
        assert_eq!(distribute(&counts, 1)[0].len(), 6);
        let problem = Problem::new(30, 50, 4, 1).unwrap();
        let known = Known::of(&problem, Machine::new(3, 1).unwrap(), Variant::TalpfDefault);
        let mut all = known.shares[0].concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..8));
    }
}
