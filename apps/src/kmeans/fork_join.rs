//! Bulk-synchronous threads: each assigns its share of the points, and after a barrier adds up the sums
//! of all and moves centres of its own.

use std::sync::Barrier;

use parking_lot::RwLock;
use talpf_runtime::Clock;
use talpf_traces::State;

use super::{Problem, Solution, kernel, result};
use crate::Error;
use crate::partition::share;
use crate::run::{Machine, Observer, Problem as _, team};

/// Moves the centres of `problem` in one rank on the workers of `machine`, or on one worker per point
/// if there are fewer points.
///
/// **Errors**: [`Error::Worker`] if a thread cannot be started.
pub fn solve(problem: &Problem, machine: Machine, observer: &Observer) -> Result<Solution, Error> {
    let machine = machine.at_most(1, problem.points());
    let workers = machine.workers();
    // Nobody reads sums while they are written, so these locks never block.
    let sums: Vec<_> = (0..workers).map(|_| RwLock::new(vec![0.0; problem.sums()])).collect();
    let barrier = Barrier::new(workers);
    let clock = Clock::start();

    let work = |worker: usize| {
        let points = kernel::points(share(problem.points(), worker, workers));
        let (mut centres, mut all) = (problem.first_centres(), vec![0.0; problem.sums()]);
        let mut trace = observer.thread(worker, &clock, "assign");
        barrier.wait();
        let start = clock.now();
        for _ in 0..problem.steps() {
            let mut mine = sums[worker].write();
            mine.fill(0.0);
            trace.task(|| kernel::assign(&points, &centres, &mut mine));
            drop(mine);
            trace.enter(State::Synchronization);
            barrier.wait();
            all.fill(0.0);
            sums.iter().for_each(|sums| kernel::add(&mut all, &sums.read()));
            kernel::advance(&mut centres, &all);
            barrier.wait();
            if worker == 0 {
                observer.progress.advance();
            }
        }
        (centres, (clock.now() - start).as_secs_f64())
    };
    let mut parts = team::run(workers, work)?;

    let (centres, seconds) = parts.swap_remove(0);
    Ok(Solution { result: result(centres), seconds, machine })
}
