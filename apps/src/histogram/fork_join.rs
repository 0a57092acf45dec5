//! Bulk-synchronous threads: each counts its share of the numbers in bins of its own, and after a
//! barrier sums its share of the bins of all.

use std::sync::Barrier;

use parking_lot::RwLock;
use talpf_runtime::Clock;
use talpf_traces::State;

use super::{Problem, Solution, kernel, result};
use crate::Error;
use crate::partition::share;
use crate::run::{Machine, Observer, Problem as _, team};

/// Counts the numbers of `problem` in one rank on the workers of `machine`, or on one worker per
/// bin if there are fewer bins.
///
/// **Errors**: [`Error::Worker`] if a thread cannot be started.
pub fn solve(problem: &Problem, machine: Machine, observer: &Observer) -> Result<Solution, Error> {
    let machine = machine.at_most(1, problem.bins());
    let workers = machine.workers();
    // Nobody reads counts while they are written, so these locks never block.
    let counts: Vec<_> = (0..workers).map(|_| RwLock::new(vec![0; problem.bins()])).collect();
    let barrier = Barrier::new(workers);
    let clock = Clock::start();

    let work = |worker: usize| {
        let numbers = share(problem.numbers(), worker, workers);
        let bins = share(problem.bins(), worker, workers);
        let mut sums = vec![0u64; bins.len()];
        let mut trace = observer.thread(worker, &clock, "count");
        barrier.wait();
        let start = clock.now();
        for step in 0..problem.steps() {
            let mut mine = counts[worker].write();
            mine.fill(0);
            trace.task(|| kernel::count(step, numbers.clone(), &mut mine));
            drop(mine);
            trace.enter(State::Synchronization);
            barrier.wait();
            for counts in &counts {
                let counts = counts.read();
                sums.iter_mut().zip(&counts[bins.clone()]).for_each(|(sum, count)| *sum += count);
            }
            barrier.wait();
            if worker == 0 {
                observer.progress.advance();
            }
        }
        (sums, (clock.now() - start).as_secs_f64())
    };
    let parts = team::run(workers, work)?;

    let seconds = parts[0].1;
    let counts = parts.into_iter().flat_map(|(sums, _)| sums);
    Ok(Solution { result: result(counts), seconds, machine })
}
