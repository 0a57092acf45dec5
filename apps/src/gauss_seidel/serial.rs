//! Reference: one thread, one matrix.

use std::time::Instant;

use super::{Problem, Solution, kernel};
use crate::run::{Machine, Observer};

/// Solves `problem` on the calling thread.
pub fn solve(problem: &Problem, observer: &Observer) -> Solution {
    let mut matrix = problem.initial_matrix();
    let start = Instant::now();
    let mut trace = observer.thread(0, start, "sweep");
    for _ in 0..problem.steps() {
        trace.task(|| kernel::sweep_columns(&mut matrix, 1..problem.cols() + 1));
        observer.progress.advance();
    }
    let seconds = start.elapsed().as_secs_f64();
    Solution { result: matrix, seconds, machine: Machine::ONE }
}
