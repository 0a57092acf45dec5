//! Reference: one thread, and two matrices that swap roles after every step.

use std::mem;

use talpf_runtime::Clock;

use super::{Problem, Solution, kernel};
use crate::heat::{Convergence, Temperatures, largest_change};
use crate::run::{Machine, Observer};

/// Solves `problem` on the calling thread.
pub fn solve(problem: &Problem, observer: &Observer) -> Solution {
    let mut old = problem.initial_matrix();
    let mut new = old.clone();
    let clock = Clock::start();
    let mut trace = observer.thread(0, &clock, "sweep");
    let (mut periods, mut residual) = (problem.periods(), None);
    while let Some(period) = periods.begin() {
        for _ in period {
            trace.task(|| kernel::sweep(old.view(), new.interior_mut()));
            mem::swap(&mut old, &mut new);
            observer.progress.advance();
        }
        if periods.have_residuals() {
            let before = residual.replace(largest_change(old.view(), new.view()));
            before.into_iter().for_each(|before| periods.end_if_small(before));
        }
    }
    let seconds = clock.now().as_secs_f64();
    let convergence = residual.map(|residual| Convergence { steps: periods.steps(), residual });
    let result = Temperatures { matrix: old, convergence };
    Solution { result, seconds, machine: Machine::ONE }
}
