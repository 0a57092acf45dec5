//! Reference: one thread, one matrix.

use talpf_runtime::Clock;

use super::{Problem, Solution, kernel};
use crate::heat::{Convergence, Temperatures, largest_change};
use crate::run::{Machine, Observer};

/// Solves `problem` on the calling thread.
pub fn solve(problem: &Problem, observer: &Observer) -> Solution {
    let mut matrix = problem.initial_matrix();
    let clock = Clock::start();
    let mut trace = observer.thread(0, &clock, "sweep");
    let (mut periods, mut residual) = (problem.periods(), None);
    while let Some(period) = periods.begin() {
        for step in period.clone() {
            let is_checked = periods.have_residuals() && step + 1 == period.end;
            let before = is_checked.then(|| matrix.clone());
            trace.task(|| kernel::sweep_columns(&mut matrix, 1..problem.cols() + 1));
            observer.progress.advance();
            if let Some(before) = before {
                let before = residual.replace(largest_change(before.view(), matrix.view()));
                before.into_iter().for_each(|before| periods.end_if_small(before));
            }
        }
    }
    let seconds = clock.now().as_secs_f64();
    let convergence = residual.map(|residual| Convergence { steps: periods.steps(), residual });
    let result = Temperatures { matrix, convergence };
    Solution { result, seconds, machine: Machine::ONE }
}
