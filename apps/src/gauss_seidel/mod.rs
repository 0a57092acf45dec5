//! Heat diffusion on a rectangle with the Gauss-Seidel method: each step replaces every inner
//! cell, row by row from the upper left, by the mean of its four neighbours, of which the upper and
//! the left one are new already.
//!
//! One matrix is enough, and half as many steps do as much as with Jacobi; but a block needs the
//! blocks above and to the left of it in the same step, and those below and to the right in the
//! previous step. So work moves over the matrix in wavefronts. A task computes a strip: some blocks
//! side by side. Strips above each other are a block column. Variants differ in the time that a
//! rank waits for its neighbours' parts of the wavefronts; all give bitwise the result of
//! [`serial`].

mod block;
pub mod fork_join;
pub mod kernel;
pub mod serial;
mod tasks;

use crate::Error;
use crate::heat::PERIOD;
use crate::run::{self, App, ForkJoin, Measure, Serial, Tasks, Variant};

pub use self::block::block;
pub use crate::heat::{Problem, Temperatures};

/// Solved problem.
pub type Solution = run::Solution<Temperatures>;

/// Gauss-Seidel solver as an application.
#[derive(Debug)]
pub struct GaussSeidel;

/// Kind of work of a cell.
pub(crate) const WORK: &str = "gauss-seidel";

impl App for GaussSeidel {
    const WORK: &'static [&'static str] = &[WORK];
    const NAME: &'static str = "gauss-seidel";
    const VARIANTS: &'static [Variant] = &[
        Variant::Serial,
        Variant::ForkJoin,
        Variant::Lpf,
        Variant::TalpfDefault,
        Variant::TalpfLanes,
        Variant::TalpfNotify,
        Variant::Tampi,
        Variant::TampiBlocking,
    ];
    const USUAL: Variant = Variant::TalpfLanes;
    const REPLAYED: &'static [Variant] =
        &[Variant::TalpfDefault, Variant::TalpfLanes, Variant::Tampi, Variant::TampiBlocking];
    const KERNELS: &'static [&'static str] = &["gauss-seidel", "sweep"];
    type Problem = Problem;
    type Outcome = Temperatures;
    const SERIAL: Serial<Self> = serial::solve;
    const FORK_JOIN: ForkJoin<Self> = fork_join::solve;
    const TASKS: Tasks<Self> = tasks::solve;

    /// Counts one matrix in parts with halos of their own, and the assembled result.
    fn bytes(variant: Variant, problem: &Problem, ranks: usize) -> u64 {
        match variant {
            Variant::Serial => problem.matrix_bytes(),
            _ => 2 * problem.band_bytes(ranks),
        }
    }

    fn check_ranks(problem: &Problem, ranks: usize) -> Result<(), Error> {
        problem.check_ranks(ranks)
    }

    /// Checks that rank 0 reaches the syncs that the other ranks wait for, while it waits for their
    /// residual: in talpf-default, where a sync is of all ranks, it is half a step ahead of each.
    fn check_variant(variant: Variant, problem: &Problem, ranks: usize) -> Result<(), Error> {
        let most = 2 * PERIOD + 1;
        if variant == Variant::TalpfDefault && problem.tolerance().is_some() && ranks > most {
            return Err(Error::ToleranceOfRanks { variant: variant.name(), ranks, most });
        }
        Ok(())
    }

    /// Returns the tolerance and the residual of a run with a tolerance.
    fn measures(problem: &Problem, solution: &Solution) -> Vec<Measure> {
        problem.measures(&solution.result)
    }
}
