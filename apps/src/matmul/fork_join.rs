//! Bulk-synchronous threads: a slice of rows per worker, a barrier after every multiplication. All
//! workers read the same `B`.

use std::mem;
use std::sync::Barrier;

use talpf_runtime::Clock;
use talpf_traces::State;

use super::kernel::{self, Factor, Term};
use super::{Problem, Solution, panels};
use crate::partition::share;
use crate::run::{Machine, Observer, team};
use crate::{Error, Matrix};

/// Multiplies the matrices of `problem` in one rank on the workers of `machine`, or on one worker
/// per row if there are fewer rows.
///
/// **Errors**: [`Error::Worker`] if a thread cannot be started.
pub fn solve(problem: &Problem, machine: Machine, observer: &Observer) -> Result<Solution, Error> {
    let size = problem.size();
    let machine = machine.at_most(1, size);
    let workers = machine.workers();
    let b = panels::pack(kernel::initial(Factor::B, 0..size, 0..size).view());
    let barrier = Barrier::new(workers);
    let clock = Clock::start();

    let work = |worker: usize| {
        let rows = share(size, worker, workers);
        let mut a = kernel::initial(Factor::A, rows.clone(), 0..size);
        let mut c = Matrix::zeros(rows.len(), size);
        let mut trace = observer.thread(worker, &clock, "multiply");
        barrier.wait();
        let start = clock.now();
        for _ in 0..problem.iterations() {
            trace.task(|| kernel::multiply(a.view(), &b, c.view_mut(), Term::ONLY));
            mem::swap(&mut a, &mut c);
            trace.enter(State::Synchronization);
            barrier.wait();
            if worker == 0 {
                observer.progress.advance();
            }
        }
        (a.into_cells(), (clock.now() - start).as_secs_f64())
    };
    let parts = team::run(workers, work)?;

    let seconds = parts[0].1;
    let cells = parts.into_iter().flat_map(|(cells, _)| cells).collect();
    Ok(Solution { result: Matrix::from_cells(cells, size), seconds, machine })
}
