//! Points of the plane counted until they leave the Mandelbrot set: work of uneven size.
//!
//! A picture is cut into pieces of some rows. A piece in the middle takes many times as long as one at the
//! border, and nobody knows how long before it was computed. With remote queues a master, which is
//! rank 0, gives every rank pieces as it finishes others; that is compared with the best static
//! distribution, which is found from the counts that the run has yet to find. Ranks with a static
//! distribution exchange nothing, so other syncs or messages would make no other variant of it.
//!
//! Counts are whole numbers, so every variant gives the result of [`serial`].

pub mod fork_join;
pub mod kernel;
mod problem;
mod queue;
pub mod serial;
mod tasks;

use crate::run::{self, App, ForkJoin, Problem as _, Serial, Tasks, Variant};
use crate::{Error, Matrix};

pub use problem::Problem;

/// Counts of all pieces (`1 x pieces`), of all steps together.
pub type Solution = run::Solution<Matrix>;

/// Kind of work of an iteration of a point.
pub(crate) const WORK: &str = "mandelbrot";

/// The Mandelbrot set as an application.
#[derive(Debug)]
pub struct Mandelbrot;

impl App for Mandelbrot {
    const NAME: &'static str = "mandelbrot";
    const WORK: &'static [&'static str] = &[WORK];
    const VARIANTS: &'static [Variant] =
        &[Variant::Serial, Variant::ForkJoin, Variant::TalpfDefault, Variant::TalpfQueue];
    const USUAL: Variant = Variant::TalpfQueue;
    const KERNELS: &'static [&'static str] = &["rows"];
    type Problem = Problem;
    type Outcome = Matrix;
    const SERIAL: Serial<Self> = serial::solve;
    const FORK_JOIN: ForkJoin<Self> = fork_join::solve;
    const TASKS: Tasks<Self> = tasks::solve;

    /// Counts a number and a task for each piece at each rank, and for each piece of all steps its
    /// count and its place in the static distribution.
    fn bytes(_: Variant, problem: &Problem, ranks: usize) -> u64 {
        let pieces = problem.pieces();
        (1024 * pieces * ranks + size_of::<[u64; 2]>() * pieces * problem.steps()) as u64
    }

    fn check_ranks(problem: &Problem, ranks: usize) -> Result<(), Error> {
        Error::check_ranks(ranks, problem.pieces(), "pieces")
    }
}

/// Returns the result of counts.
fn result(counts: Vec<f64>) -> Matrix {
    let pieces = counts.len();
    Matrix::from_cells(counts, pieces)
}
