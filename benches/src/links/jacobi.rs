//! Steps of Jacobi on two ranks, each in a process of its own, or both in one.

use std::sync::Arc;

use ibverbs_sim::Rail;
use serde::{Deserialize, Serialize};
use talpf::Settings;
use talpf_apps::heat::{Problem, default_sources};
use talpf_apps::jacobi::Jacobi;
use talpf_apps::run::{self, App, Machine, Observer, Outcome as _, RankCount, processes};

use crate::error::Error;

const RANKS: usize = 2;
const BLOCK: usize = 128;

/// Size of a run.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Size {
    /// Rows, and columns.
    pub(super) side: usize,
    pub(super) steps: usize,
}

impl Size {
    /// Returns the sizes that are measured, with more steps the more `rounds` there are.
    pub(super) fn all(rounds: usize) -> [Self; 2] {
        [(256, 2 * rounds), (1024, rounds / 5)].map(|(side, steps)| Self { side, steps })
    }
}

/// Result of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    /// Time of a step.
    pub(super) step_us: f64,
    hash: u64,
}

impl Outcome {
    /// Checks that a run has the result of this one, which was in one process.
    ///
    /// **Errors**: [`Error::WrongResult`].
    pub(super) fn check(&self, other: &Self, contender: &'static str) -> Result<(), Error> {
        if self.hash == other.hash {
            return Ok(());
        }
        let (expected, found) = (self.hash, other.hash);
        Err(Error::WrongResult { contender, what: "Jacobi".to_owned(), expected, found })
    }
}

/// Runs the rank of this process, with a worker. The outcome is that of rank 0.
pub(super) fn run(rail: Arc<dyn Rail>, size: Size) -> Result<Option<Outcome>, Error> {
    run_on(processes::on_rail(rail, RankCount::Each(1), 1)?, size)
}

/// Runs both ranks in this process, on two workers that they share, or on one of each rank alone.
pub(super) fn run_in_one_process(
    size: Size,
    workers_per_rank: Option<usize>,
) -> Result<Outcome, Error> {
    let machine = Machine::new(RANKS, RANKS)?.with_workers_per_rank(workers_per_rank)?;
    Ok(run_on(machine, size)?.unwrap_or_default())
}

fn run_on(machine: Machine, Size { side, steps }: Size) -> Result<Option<Outcome>, Error> {
    let problem = Problem::new(side, side, BLOCK, steps, default_sources())?;
    let machine = machine.set(Settings::load(None)?);
    let solution = run::run::<Jacobi>(Jacobi::USUAL, &problem, machine, &Observer::default())?;
    Ok(solution.map(|solution| Outcome {
        step_us: solution.seconds * 1e6 / steps as f64,
        hash: solution.result.hash(),
    }))
}
