//! Bulk-synchronous threads: each takes the next piece of a step, until all are taken.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use talpf_runtime::Clock;
use talpf_traces::State;

use super::{Problem, Solution, result};
use crate::Error;
use crate::run::{Machine, Observer, Problem as _, team};

/// Counts the pieces of `problem` in one rank on the workers of `machine`, or on one worker per piece
/// if there are fewer pieces.
///
/// **Errors**: [`Error::Worker`] if a thread cannot be started.
pub fn solve(problem: &Problem, machine: Machine, observer: &Observer) -> Result<Solution, Error> {
    let machine = machine.at_most(1, problem.pieces());
    let workers = machine.workers();
    // A count for each step, so that nobody sets one that others still read.
    let taken: Vec<_> = (0..problem.steps()).map(|_| AtomicUsize::new(0)).collect();
    let barrier = Barrier::new(workers);
    let clock = Clock::start();

    let work = |worker: usize| {
        let mut counts = vec![0.0; problem.pieces()];
        let mut trace = observer.thread(worker, &clock, "rows");
        barrier.wait();
        let start = clock.now();
        for (step, taken) in taken.iter().enumerate() {
            let next = || Some(taken.fetch_add(1, Ordering::Relaxed));
            trace.task(|| {
                while let Some(piece) = next().filter(|piece| *piece < problem.pieces()) {
                    counts[piece] += problem.count(step, piece) as f64;
                }
            });
            trace.enter(State::Synchronization);
            barrier.wait();
            if worker == 0 {
                observer.progress.advance();
            }
        }
        (counts, (clock.now() - start).as_secs_f64())
    };
    let parts = team::run(workers, work)?;

    let seconds = parts[0].1;
    let mut counts = vec![0.0; problem.pieces()];
    for (part, _) in parts {
        counts.iter_mut().zip(part).for_each(|(count, more)| *count += more);
    }
    Ok(Solution { result: result(counts), seconds, machine })
}
