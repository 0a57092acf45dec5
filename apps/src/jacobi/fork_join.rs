//! Bulk-synchronous threads: one band of rows per worker, a barrier after every step.
//!
//! A worker owns its band in both matrices, with a copy of the rows just above and below it, and
//! allocates it itself so that its pages are on its NUMA node. In each step it computes its band,
//! copies its first and last row to the shelf of that step's parity, waits at the barrier, and
//! reads its neighbours' shelves. One barrier per step is enough: a shelf is written again two
//! steps later, and no worker gets there before all have passed the barrier in between, which they
//! do after reading.
//!
//! Deliberately absent: overlap. The task variants are compared with this one.

use std::mem;
use std::ops::Range;
use std::sync::Barrier;

use parking_lot::Mutex;
use talpf_runtime::Clock;
use talpf_traces::State;

use super::{Problem, Solution, kernel};
use crate::heat::{Border, Periods, TeamChanges, Temperatures, largest_change};
use crate::run::{Machine, Observer, team};
use crate::{Error, Matrix};

/// Solves `problem` in one rank on the workers of `machine`, or on one worker per row if there are
/// fewer rows.
///
/// **Errors**: [`Error::Worker`] if a thread cannot be started.
pub fn solve(problem: &Problem, machine: Machine, observer: &Observer) -> Result<Solution, Error> {
    let machine = machine.at_most(1, problem.rows());
    let team = Team::new(problem, machine.workers(), observer);
    let parts = team::run(machine.workers(), |worker| team.work(worker))?;

    let (seconds, convergence) = (parts[0].seconds, team.changes.convergence(&parts[0].periods));
    let mut matrix = Matrix::zeros(problem.rows() + 2, problem.cols() + 2);
    team.border.apply(0, 0, matrix.view_mut());
    for (band, part) in team.bands.iter().zip(parts) {
        for (local, row) in band.rows.clone().enumerate() {
            matrix.row_mut(row + 1).copy_from_slice(part.matrix.row(local + 1));
        }
    }
    Ok(Solution { result: Temperatures { matrix, convergence }, seconds, machine })
}

/// State shared by the workers.
struct Team<'a> {
    problem: &'a Problem,
    observer: &'a Observer,
    clock: Clock,
    border: Border,
    bands: Vec<Band>,
    changes: TeamChanges,
    barrier: Barrier,
}

/// Rows of one worker, counted without the border, and their copies for its neighbours.
struct Band {
    rows: Range<usize>,
    shelves: [Shelf; 2],
}

/// Outer rows of a band after a step of one parity.
#[derive(Default)]
struct Shelf {
    first: Mutex<Vec<f64>>,
    last: Mutex<Vec<f64>>,
}

/// Part of the result of a worker.
struct Part {
    matrix: Matrix,
    periods: Periods,
    seconds: f64,
}

impl<'a> Team<'a> {
    fn new(problem: &'a Problem, workers: usize, observer: &'a Observer) -> Self {
        let band =
            |worker| Band { rows: problem.band(worker, workers), shelves: Default::default() };
        Self {
            problem,
            observer,
            clock: Clock::start(),
            border: problem.border(),
            bands: (0..workers).map(band).collect(),
            changes: TeamChanges::new(workers),
            barrier: Barrier::new(workers),
        }
    }

    fn work(&self, index: usize) -> Part {
        let band = &self.bands[index];
        let above = index.checked_sub(1).map(|above| &self.bands[above]);
        let below = self.bands.get(index + 1);

        let rows = band.rows.len();
        let mut old = Matrix::zeros(rows + 2, self.problem.cols() + 2);
        self.border.apply(band.rows.start, 0, old.view_mut());
        let mut trace = self.observer.thread(index, &self.clock, "sweep");
        let mut new = old.clone();

        self.barrier.wait();
        let start = self.clock.now();
        let mut periods = self.problem.periods();
        while let Some(period) = periods.begin() {
            for step in period {
                trace.task(|| kernel::sweep(old.view(), new.interior_mut()));
                trace.enter(State::DataCopy);
                let parity = step % 2;
                leave(&band.shelves[parity].first, new.row(1));
                leave(&band.shelves[parity].last, new.row(rows));
                trace.enter(State::Synchronization);
                self.barrier.wait();
                trace.enter(State::DataCopy);
                if let Some(above) = above {
                    new.row_mut(0).copy_from_slice(&above.shelves[parity].last.lock());
                }
                if let Some(below) = below {
                    new.row_mut(rows + 1).copy_from_slice(&below.shelves[parity].first.lock());
                }
                mem::swap(&mut old, &mut new);
                if index == 0 {
                    self.observer.progress.advance();
                }
            }
            if periods.have_residuals() {
                let [before, after] = [&new, &old]
                    .map(|matrix| matrix.block(1..rows + 1, 1..self.problem.cols() + 1));
                self.changes.end_period(&mut periods, index, largest_change(before, after));
            }
        }
        Part { matrix: old, periods, seconds: (self.clock.now() - start).as_secs_f64() }
    }
}

fn leave(place: &Mutex<Vec<f64>>, row: &[f64]) {
    let mut place = place.lock();
    place.clear();
    place.extend_from_slice(row);
}
