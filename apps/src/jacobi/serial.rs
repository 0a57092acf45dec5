//! Reference: one thread, and two matrices that swap roles after every step.

use std::mem;
use std::time::Instant;

use super::{Problem, Solution, kernel};
use crate::run::{Machine, Observer};

/// Solves `problem` on the calling thread.
pub fn solve(problem: &Problem, observer: &Observer) -> Solution {
    let mut old = problem.initial_matrix();
    let mut new = old.clone();
    let start = Instant::now();
    let mut trace = observer.thread(0, start, "sweep");
    for _ in 0..problem.steps() {
        trace.task(|| kernel::sweep(old.view(), new.interior_mut()));
        mem::swap(&mut old, &mut new);
        observer.progress.advance();
    }
    let seconds = start.elapsed().as_secs_f64();
    Solution { result: old, seconds, machine: Machine::ONE }
}
