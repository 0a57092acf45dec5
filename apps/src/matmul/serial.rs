//! Reference: one thread, whole matrices.

use std::mem;

use talpf_runtime::Clock;

use super::kernel::{self, Factor, Term};
use super::{Problem, Solution, panels};
use crate::Matrix;
use crate::run::{Machine, Observer};

/// Multiplies the matrices of `problem` on the calling thread.
pub fn solve(problem: &Problem, observer: &Observer) -> Solution {
    let size = problem.size();
    let b = panels::pack(kernel::initial(Factor::B, 0..size, 0..size).view());
    let mut a = kernel::initial(Factor::A, 0..size, 0..size);
    let mut c = Matrix::zeros(size, size);
    let clock = Clock::start();
    let mut trace = observer.thread(0, &clock, "multiply");
    for _ in 0..problem.iterations() {
        trace.task(|| kernel::multiply(a.view(), &b, c.view_mut(), Term::ONLY));
        mem::swap(&mut a, &mut c);
        observer.progress.advance();
    }
    let seconds = clock.now().as_secs_f64();
    Solution { result: a, seconds, machine: Machine::ONE }
}
