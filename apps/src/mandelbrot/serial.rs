//! Reference: one thread.

use talpf_runtime::Clock;

use super::{Problem, Solution, result};
use crate::run::{Machine, Observer, Problem as _};

/// Counts the pieces of `problem` on the calling thread.
pub fn solve(problem: &Problem, observer: &Observer) -> Solution {
    let mut counts = vec![0.0; problem.pieces()];
    let clock = Clock::start();
    let mut trace = observer.thread(0, &clock, "rows");
    for step in 0..problem.steps() {
        trace.task(|| {
            for (piece, count) in counts.iter_mut().enumerate() {
                *count += problem.count(step, piece) as f64;
            }
        });
        observer.progress.advance();
    }
    let seconds = clock.now().as_secs_f64();
    Solution { result: result(counts), seconds, machine: Machine::ONE }
}
