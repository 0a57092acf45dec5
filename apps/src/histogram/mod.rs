//! Histogram of random numbers whose bins are distributed over the ranks.
//!
//! In each step every rank draws its share of new numbers, in blocks, and adds them to the bins,
//! which lie with any rank. The numbers decide where a rank adds, so nobody knows how much comes to
//! a rank before a step has ended: additions are atomics ([`talpf::Lane::fetch_and_add`]), and
//! rounds end with default syncs. With aggregation a block is counted first and adds once to each
//! bin that it has numbers of; without, every number is one addition.
//!
//! Counts are whole numbers, so every variant gives the result of [`serial`].

pub mod fork_join;
pub mod kernel;
mod problem;
pub mod serial;
mod tasks;

use crate::run::{self, App, ForkJoin, Serial, Tasks, Variant};
use crate::{Error, Matrix};

pub use problem::Problem;

/// Counts of all bins (`1 x bins`).
pub type Solution = run::Solution<Matrix>;

/// Histogram as an application.
#[derive(Debug)]
pub struct Histogram;

impl App for Histogram {
    const NAME: &'static str = "histogram";
    const VARIANTS: &'static [Variant] =
        &[Variant::Serial, Variant::ForkJoin, Variant::TalpfDefault];
    const USUAL: Variant = Variant::TalpfDefault;
    const KERNELS: &'static [&'static str] = &["count"];
    type Problem = Problem;
    type Outcome = Matrix;
    const SERIAL: Serial<Self> = serial::solve;
    const FORK_JOIN: ForkJoin<Self> = fork_join::solve;
    const TASKS: Tasks<Self> = tasks::solve;

    /// Counts the bins, and with ranks the additions of all blocks with their results.
    fn bytes(variant: Variant, problem: &Problem, ranks: usize) -> u64 {
        let word = size_of::<u64>() as u64;
        match variant {
            Variant::TalpfDefault => {
                let blocks = (problem.numbers() / problem.block() + ranks) as u64;
                problem.bin_bytes() + 2 * word * blocks * problem.additions() as u64
            }
            _ => 2 * problem.bin_bytes(),
        }
    }

    fn check_ranks(problem: &Problem, ranks: usize) -> Result<(), Error> {
        Error::check_ranks(ranks, problem.bins(), "bins")
    }
}

/// Returns the result of counts.
fn result(counts: impl IntoIterator<Item = u64>) -> Matrix {
    let cells: Vec<f64> = counts.into_iter().map(|count| count as f64).collect();
    let bins = cells.len();
    Matrix::from_cells(cells, bins)
}
