//! Options of the Mandelbrot set.

use clap::Args;
use talpf_apps::Error;
use talpf_apps::mandelbrot::Problem;

use super::number_within::number_within;

/// Points, iterations, and the number of steps.
#[derive(Args, Debug)]
pub(super) struct ProblemOptions {
    /// Rows and columns of a picture
    #[arg(long, value_name = "N", value_parser = number_within(Problem::SIZE),
          default_value_t = 512)]
    size: usize,

    /// Most iterations of a point
    #[arg(long, value_name = "K", value_parser = number_within(Problem::LIMIT),
          default_value_t = 500)]
    limit: usize,

    /// Rows of a piece, the unit of work of tasks
    #[arg(long, value_name = "B", value_parser = number_within(Problem::SIZE),
          default_value_t = 8)]
    block: usize,

    /// Steps to compute, each a picture
    #[arg(long, value_name = "T", value_parser = number_within(Problem::STEPS),
          default_value_t = 10)]
    steps: usize,
}

impl ProblemOptions {
    pub(super) fn problem(&self) -> Result<Problem, Error> {
        Problem::new(self.size, self.limit, self.block, self.steps)
    }
}
