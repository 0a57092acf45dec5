//! Reference: one thread.

use talpf_runtime::Clock;

use super::{Problem, Solution, kernel, result};
use crate::run::{Machine, Observer, Problem as _};

/// Counts the numbers of `problem` on the calling thread.
pub fn solve(problem: &Problem, observer: &Observer) -> Solution {
    let mut counts = vec![0; problem.bins()];
    let clock = Clock::start();
    let mut trace = observer.thread(0, &clock, "count");
    for step in 0..problem.steps() {
        trace.task(|| kernel::count(step, 0..problem.numbers(), &mut counts));
        observer.progress.advance();
    }
    let seconds = clock.now().as_secs_f64();
    Solution { result: result(counts), seconds, machine: Machine::ONE }
}
