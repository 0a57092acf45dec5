//! Bulk-synchronous threads: one band of rows per worker, a barrier after every front.
//!
//! Block columns cut the bands. In front `f`, worker `w` computes the parts of its band whose column
//! `j` and step `t` satisfy `j + 2 t = f - w`: their inputs were computed in earlier fronts, and they
//! do not depend on each other. So every worker has work in every front but the first and last few,
//! unless there is only one column.
//!
//! Workers own their bands and read copies of their neighbours' outermost rows from shelves, a
//! piece for each column. One buffer per piece is enough: a piece written in one front is read in
//! the next, and replaced in the one after that at the earliest.
//!
//! With a tolerance, the fronts of a period end before those of the next begin.

use std::ops::Range;
use std::sync::Barrier;

use parking_lot::Mutex;
use talpf_runtime::Clock;
use talpf_traces::State;

use super::block::strips;
use super::{Problem, Solution, kernel};
use crate::heat::{Border, Periods, TeamChanges, Temperatures, largest_change};
use crate::run::{Machine, Observer, ThreadTrace, team};
use crate::{Error, Matrix};

/// Solves `problem` in one rank on the workers of `machine`, or on one worker per row if there are
/// fewer rows.
///
/// **Errors**: [`Error::Worker`] if a thread cannot be started.
pub fn solve(problem: &Problem, machine: Machine, observer: &Observer) -> Result<Solution, Error> {
    let machine = machine.at_most(1, problem.rows());
    let workers = machine.workers();
    let columns: Vec<_> = strips(problem).collect();
    let shelf = |_| Shelf {
        first: columns.iter().map(|_| Mutex::default()).collect(),
        last: columns.iter().map(|_| Mutex::default()).collect(),
    };
    let team = Team {
        problem,
        observer,
        clock: Clock::start(),
        border: problem.border(),
        shelves: (0..workers).map(shelf).collect(),
        columns: columns.clone(),
        changes: TeamChanges::new(workers),
        barrier: Barrier::new(workers),
    };
    let parts = team::run(workers, |worker| team.work(worker, workers))?;
    let (seconds, convergence) = (parts[0].seconds, team.changes.convergence(&parts[0].periods));
    let band = |Part { matrix, .. }: Part| {
        let rows = (1..matrix.rows() - 1).map(|row| &matrix.row(row)[1..=problem.cols()]);
        rows.collect::<Vec<_>>().concat()
    };
    let bands = parts.into_iter().map(band).collect();
    let matrix = problem.assemble(&problem.decomposition(workers)?, &team.border, bands);
    Ok(Solution { result: Temperatures { matrix, convergence }, seconds, machine })
}

/// State shared by the workers.
struct Team<'a> {
    problem: &'a Problem,
    observer: &'a Observer,
    clock: Clock,
    border: Border,
    /// Shelves of the workers.
    shelves: Vec<Shelf>,
    /// Columns of every block column.
    columns: Vec<Range<usize>>,
    changes: TeamChanges,
    barrier: Barrier,
}

/// Band of a worker with its halos, after the last step.
struct Part {
    matrix: Matrix,
    periods: Periods,
    seconds: f64,
}

/// Outer rows of a band for its neighbours, a piece for each block column.
struct Shelf {
    first: Vec<Mutex<Vec<f64>>>,
    last: Vec<Mutex<Vec<f64>>>,
}

impl Team<'_> {
    /// Computes the band of a worker.
    fn work(&self, worker: usize, workers: usize) -> Part {
        let band = self.problem.band(worker, workers);
        let mut matrix = Matrix::zeros(band.len() + 2, self.problem.cols() + 2);
        self.border.apply(band.start, 0, matrix.view_mut());
        let mut trace = self.observer.thread(worker, &self.clock, "sweep");

        self.barrier.wait();
        let start = self.clock.now();
        let mut periods = self.problem.periods();
        while let Some(period) = periods.begin() {
            let checked = periods.have_residuals().then(|| period.end - 1);
            let change = self.compute(&mut matrix, (worker, workers), period, checked, &mut trace);
            if checked.is_some() {
                self.changes.end_period(&mut periods, worker, change);
            }
        }
        Part { matrix, periods, seconds: (self.clock.now() - start).as_secs_f64() }
    }

    /// Computes the fronts of a period. Returns the largest change of a cell in the checked step.
    fn compute(
        &self,
        matrix: &mut Matrix,
        (worker, workers): (usize, usize),
        period: Range<usize>,
        checked: Option<usize>,
        trace: &mut ThreadTrace,
    ) -> f64 {
        let (columns, mut change) = (self.columns.len(), 0.0_f64);
        let fronts = columns + 2 * (period.len() - 1) + workers - 1;
        for front in 0..fronts {
            for column in 0..columns {
                let Some(twice) = front.checked_sub(worker + column) else { break };
                let (step, cols) = (period.start + twice / 2, self.columns[column].clone());
                if twice % 2 != 0 || step >= period.end {
                    continue;
                }
                trace.enter(State::DataCopy);
                self.take(matrix, worker, column, step);
                let rows = 1..matrix.rows() - 1;
                let before = (checked == Some(step))
                    .then(|| matrix.block(rows.clone(), cols.clone()).to_owned());
                trace.task(|| kernel::sweep_columns(matrix, cols.clone()));
                if let Some(before) = before {
                    let after = matrix.block(rows, cols);
                    change = change.max(largest_change(before.view(), after));
                }
                trace.enter(State::DataCopy);
                self.leave(matrix, worker, column);
                if worker == 0 && column + 1 == columns {
                    self.observer.progress.advance();
                }
            }
            trace.enter(State::Synchronization);
            self.barrier.wait();
        }
        change
    }

    /// Copies the neighbours' rows over a column: the row above of this step, the row below of the
    /// last.
    fn take(&self, matrix: &mut Matrix, worker: usize, column: usize, step: usize) {
        let (cols, last) = (self.columns[column].clone(), matrix.rows() - 1);
        if let Some(above) = worker.checked_sub(1) {
            let row = self.shelves[above].last[column].lock();
            matrix.row_mut(0)[cols.clone()].copy_from_slice(&row);
        }
        if let Some(below) = self.shelves.get(worker + 1).filter(|_| step > 0) {
            matrix.row_mut(last)[cols].copy_from_slice(&below.first[column].lock());
        }
    }

    fn leave(&self, matrix: &Matrix, worker: usize, column: usize) {
        let (cols, shelf) = (self.columns[column].clone(), &self.shelves[worker]);
        shelf.first[column].lock().clone_from(&matrix.row(1)[cols.clone()].to_vec());
        shelf.last[column].lock().clone_from(&matrix.row(matrix.rows() - 2)[cols].to_vec());
    }
}
