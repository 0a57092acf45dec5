//! Heat diffusion on a rectangle with the Jacobi method: each step replaces every inner cell by
//! the mean of its four neighbours in the matrix of the step before.
//!
//! [`run`](run::run) executes one [`Variant`] of a [`Problem`]. All variants use the same
//! [`kernel`] and give bitwise the result of [`serial`], so that they differ in time alone.

mod block;
pub mod fork_join;
pub mod kernel;
pub mod serial;
mod tasks;

use crate::Error;
use crate::run::{self, App, ForkJoin, Measure, Serial, Tasks, Variant};

pub use crate::heat::{Problem, Temperatures};

pub use self::block::block;
use self::block::strip_columns;

/// Solved problem.
pub type Solution = run::Solution<Temperatures>;

/// Jacobi solver as an application.
#[derive(Debug)]
pub struct Jacobi;

/// Kind of work of a cell.
pub(crate) const WORK: &str = "jacobi";

impl App for Jacobi {
    const WORK: &'static [&'static str] = &[WORK];
    const NAME: &'static str = "jacobi";
    const VARIANTS: &'static [Variant] = &[
        Variant::Serial,
        Variant::ForkJoin,
        Variant::Lpf,
        Variant::TalpfDefault,
        Variant::TalpfCached,
        Variant::TalpfCachedBarrier,
        Variant::TalpfCachedAck,
        Variant::TalpfRawCached,
        Variant::TalpfMsg,
        Variant::TalpfGet,
        Variant::Tampi,
        Variant::TampiBlocking,
    ];
    /// All variants with tasks except the one whose channel is in use from one step to the next.
    const REPLAYED: &'static [Variant] = &[
        Variant::TalpfDefault,
        Variant::TalpfCached,
        Variant::TalpfCachedBarrier,
        Variant::TalpfCachedAck,
        Variant::TalpfMsg,
        Variant::TalpfGet,
        Variant::Tampi,
        Variant::TampiBlocking,
    ];
    const KERNELS: &'static [&'static str] = &["jacobi", "sweep"];
    type Problem = Problem;
    type Outcome = Temperatures;
    const SERIAL: Serial<Self> = serial::solve;
    const FORK_JOIN: ForkJoin<Self> = fork_join::solve;
    const TASKS: Tasks<Self> = tasks::solve;

    /// Counts two matrices; ranks have halos of their own.
    fn bytes(variant: Variant, problem: &Problem, ranks: usize) -> u64 {
        2 * problem.band_bytes(if variant.has_ranks() { ranks } else { 1 })
    }

    fn check_ranks(problem: &Problem, ranks: usize) -> Result<(), Error> {
        problem.check_ranks(ranks)
    }

    fn ranks_of(problem: &Problem) -> Option<usize> {
        problem.grid().map(|[rows, cols]| rows as usize * cols as usize)
    }

    /// Checks that links, which are of rows, fit the grid of ranks.
    fn check_variant(variant: Variant, problem: &Problem, _ranks: usize) -> Result<(), Error> {
        match problem.grid() {
            Some([_, cols]) if cols > 1 && variant == Variant::TalpfRawCached => {
                Err(Error::GridOfRows { variant: variant.name(), cols })
            }
            _ => Ok(()),
        }
    }

    /// Returns the tolerance and the residual of a run with a tolerance.
    fn measures(problem: &Problem, solution: &Solution) -> Vec<Measure> {
        problem.measures(&solution.result)
    }
}
