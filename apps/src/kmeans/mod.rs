//! Clusters of points by k-means, whose ranks need each other's sums in every step.
//!
//! Each rank has a share of the points, in blocks. In a step every block assigns its points to the
//! nearest of some centres and sums them up; the ranks exchange their sums, and every rank reduces
//! them in the same order and moves the centres to the means of their points. No step begins before
//! all ranks have ended the one before: what a step costs beside its points is the exchange.
//!
//! Coordinates are whole numbers, whose sums are exact. So every variant gives the bits of
//! [`serial`].
//!
//! **Source**: Lloyd, 1982.

pub mod fork_join;
pub mod kernel;
mod problem;
pub mod serial;
mod tasks;

use crate::run::{self, App, ForkJoin, Serial, Tasks, Variant};
use crate::{Error, Matrix};

pub use problem::Problem;

/// The centres (`clusters x 2`).
pub type Solution = run::Solution<Matrix>;

/// Kind of work of a distance between a point and a centre.
pub(crate) const WORK: &str = "kmeans";

/// K-means as an application.
#[derive(Debug)]
pub struct Kmeans;

impl App for Kmeans {
    const NAME: &'static str = "kmeans";
    const WORK: &'static [&'static str] = &[WORK];
    const VARIANTS: &'static [Variant] = &[
        Variant::Serial,
        Variant::ForkJoin,
        Variant::Lpf,
        Variant::TalpfDefault,
        Variant::TalpfCached,
        Variant::TalpfCachedBarrier,
        Variant::TalpfCachedAck,
        Variant::TalpfMsg,
        Variant::TalpfGet,
        Variant::TalpfNotify,
        Variant::Tampi,
        Variant::TampiBlocking,
    ];
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
    const KERNELS: &'static [&'static str] = &["assign"];
    type Problem = Problem;
    type Outcome = Matrix;
    const SERIAL: Serial<Self> = serial::solve;
    const FORK_JOIN: ForkJoin<Self> = fork_join::solve;
    const TASKS: Tasks<Self> = tasks::solve;

    /// Counts the points, and the sums of all blocks and at each rank of all ranks.
    fn bytes(_: Variant, problem: &Problem, ranks: usize) -> u64 {
        let blocks = problem.points() / problem.block() + ranks;
        let cells = kernel::AXES * problem.points() + (blocks + ranks * ranks) * problem.sums();
        (cells * size_of::<f64>()) as u64
    }

    fn check_ranks(problem: &Problem, ranks: usize) -> Result<(), Error> {
        Error::check_ranks(ranks, problem.points(), "points")
    }
}

/// Returns the result of centres.
fn result(centres: Vec<f64>) -> Matrix {
    Matrix::from_cells(centres, kernel::AXES)
}
