//! Tasks on ranks: the best static distribution of the pieces, or a master that gives them out.

use std::sync::Arc;

use talpf_runtime::Array;

use super::{Problem, Solution, queue, result};
use crate::Error;
use crate::run::{
    LOOKAHEAD, Machine, Observer, Part, Problem as _, RankContext, RankSpeed, RunInput, Step,
    Variant, declare_count, solve_on_ranks,
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
    let program = move |ctx: RankContext, input: Arc<RunInput<Problem>>| async move {
        match ctx.clone() {
            RankContext::OneSided(one_sided, protocol) if protocol.is_notified => {
                queue::rank(ctx, one_sided, input).await
            }
            _ => rank(ctx, input).await,
        }
    };
    solve_on_ranks(problem, machine, variant, observer, program, assemble)
}

/// Runs the program of a rank that has its pieces from the start.
async fn rank(ctx: RankContext, input: Arc<RunInput<Problem>>) -> Result<Part, Error> {
    let problem = input.problem;
    // Not part of the time: nobody knows this before the run.
    let steps: Vec<_> = (0..problem.steps())
        .map(|step| own_pieces(&problem, step, (ctx.rank(), ctx.size())))
        .collect();
    let counts = Array::new(ctx.group(), vec![0.0; problem.pieces()], 1)?;
    let speed = RankSpeed::of(&ctx, input.machine);
    let mut lookahead = ctx.group().lookahead(LOOKAHEAD);

    ctx.barrier().await?;
    let started = ctx.now();
    for (step, pieces) in steps.into_iter().enumerate() {
        lookahead.step().await?;
        for piece in pieces {
            let speed = speed.clone();
            let task = ctx.group().task("rows").inout(&counts.tile(piece));
            task.spawn(move |count| {
                speed.compute(count, |count| count[0] += problem.count(step, piece) as f64);
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

/// Returns the pieces of a step that a rank of some has, in a distribution by their work: the largest
/// piece goes to the rank that has the least so far, then the next one.
fn own_pieces(problem: &Problem, step: usize, (own, ranks): (usize, usize)) -> Vec<usize> {
    let work = |piece| (problem.count(step, piece), piece);
    let mut pieces: Vec<_> = (0..problem.pieces()).map(work).collect();
    pieces.sort_unstable_by(|one, other| other.cmp(one));
    distribute(&pieces, ranks).swap_remove(own)
}

/// Distributes pieces, the largest first.
fn distribute(pieces: &[(u64, usize)], ranks: usize) -> Vec<Vec<usize>> {
    let mut given = vec![(0, Vec::new()); ranks];
    for (work, piece) in pieces {
        if let Some((sum, own)) = given.iter_mut().min_by_key(|(sum, _)| *sum) {
            *sum += work;
            own.push(*piece);
        }
    }
    given.into_iter().map(|(_, own)| own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_is_even_and_has_all_pieces() {
        let pieces = [(9, 4), (7, 0), (6, 2), (5, 1), (3, 5), (2, 3)];
        assert_eq!(distribute(&pieces, 2), [vec![4, 1, 3], vec![0, 2, 5]]);
        assert_eq!(distribute(&pieces, 1)[0].len(), 6);
        let problem = Problem::new(30, 50, 4, 1).unwrap();
        let all = (0..3).flat_map(|rank| own_pieces(&problem, 0, (rank, 3)));
        let mut all: Vec<_> = all.collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..8));
    }
}
