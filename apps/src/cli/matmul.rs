//! Options of a multiplication of matrices.

use clap::Args;
use talpf_apps::Error;
use talpf_apps::matmul::{self, Problem};

use super::number_within::number_within;
use super::run_options::Preset;

/// Sizes of the matrices, and the number of multiplications.
#[derive(Args, Debug)]
pub(super) struct ProblemOptions {
    /// Rows and columns of the matrices [default: 1024]
    #[arg(long, value_name = "S", value_parser = number_within(Problem::SIZES))]
    size: Option<usize>,

    /// Rows of a block, the unit of work of tasks
    #[arg(long, value_name = "B", value_parser = number_within(Problem::SIZES))]
    block: Option<usize>,

    /// Multiplications to compute [default: 10]
    #[arg(long, value_name = "K", value_parser = number_within(Problem::ITERATIONS))]
    iterations: Option<usize>,

    /// Sizes for options that are not given: 16384 x 16384 in blocks of 512, 100 iterations
    #[arg(long, value_enum)]
    preset: Option<Preset>,
}

impl ProblemOptions {
    pub(super) fn problem(&self) -> Result<Problem, Error> {
        let (size, block, iterations) = match self.preset {
            None => (1024, None, 10),
            Some(Preset::Thesis) => (16_384, Some(512), 100),
        };
        let size = self.size.unwrap_or(size);
        let block = self.block.or(block).unwrap_or_else(|| matmul::block(size));
        Problem::new(size, block, self.iterations.unwrap_or(iterations))
    }
}
