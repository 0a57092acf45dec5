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
    let is_static = variant != Variant::TalpfQueue;
    // Not part of the time: nobody knows the work of a piece before the run.
    let sorted = (0..problem.steps()).filter(|_| is_static).map(|step| by_work(problem, step));
    let sorted: Arc<[_]> = sorted.collect();
    let program = move |ctx: RankContext, input: Arc<RunInput<Problem>>| {
        let sorted = Arc::clone(&sorted);
        async move {
            match ctx.clone() {
                RankContext::OneSided(one_sided, _) if !is_static => {
                    queue::rank(ctx, one_sided, input).await
                }
                _ => rank(ctx, input, &sorted).await,
            }
        }
    };
    solve_on_ranks(problem, machine, variant, observer, program, assemble)
}

/// Pieces of a step with their work, the largest first.
type Sorted = Vec<(u64, usize)>;

/// Runs the program of a rank that has its pieces of all steps from the start.
async fn rank(
    ctx: RankContext,
    input: Arc<RunInput<Problem>>,
    sorted: &[Sorted],
) -> Result<Part, Error> {
    let problem = input.problem;
    let own_pieces = |sorted: &Sorted| distribute(sorted, ctx.size()).swap_remove(ctx.rank());
    let steps: Vec<Vec<usize>> = sorted.iter().map(own_pieces).collect();
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

/// Returns the pieces of a step by their work.
fn by_work(problem: &Problem, step: usize) -> Sorted {
    let work = |piece| (problem.count(step, piece), piece);
    let mut pieces: Sorted = (0..problem.pieces()).map(work).collect();
    pieces.sort_unstable_by(|one, other| other.cmp(one));
    pieces
}

/// Distributes sorted pieces by their work: the largest goes to the rank that has the least so far, then
/// the next one. Returns the pieces of each rank.
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
        let mut all = distribute(&by_work(&problem, 0), 3).concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..8));
    }
}
