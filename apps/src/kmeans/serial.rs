//! Reference: one thread.

use talpf_runtime::Clock;

use super::{Problem, Solution, kernel, result};
use crate::run::{Machine, Observer, Problem as _};

/// Moves the centres of `problem` on the calling thread.
pub fn solve(problem: &Problem, observer: &Observer) -> Solution {
    let (points, mut centres) = (kernel::points(0..problem.points()), problem.first_centres());
    let mut sums = vec![0.0; problem.sums()];
    let clock = Clock::start();
    let mut trace = observer.thread(0, &clock, "assign");
    for _ in 0..problem.steps() {
        sums.fill(0.0);
        trace.task(|| kernel::assign(&points, &centres, &mut sums));
        kernel::advance(&mut centres, &sums);
        observer.progress.advance();
    }
    let seconds = clock.now().as_secs_f64();
    Solution { result: result(centres), seconds, machine: Machine::ONE }
}
