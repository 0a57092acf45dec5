//! Options of a histogram.

use clap::Args;
use talpf_apps::Error;
use talpf_apps::histogram::Problem;

use super::number_within::number_within;

/// Numbers, bins, and the number of steps.
#[derive(Args, Debug)]
pub(super) struct ProblemOptions {
    /// Random numbers in each step
    #[arg(long, value_name = "N", value_parser = number_within(Problem::NUMBERS),
          default_value_t = 1 << 20)]
    numbers: usize,

    /// Bins, which are distributed over the ranks
    #[arg(long, value_name = "K", value_parser = number_within(Problem::BINS),
          default_value_t = 256)]
    bins: usize,

    /// Numbers in a block, the unit of work of tasks [default: 16384, or 256 without aggregation]
    #[arg(long, value_name = "B", value_parser = number_within(Problem::NUMBERS))]
    block: Option<usize>,

    /// Steps to compute
    #[arg(long, value_name = "T", value_parser = number_within(Problem::STEPS),
          default_value_t = 20)]
    steps: usize,

    /// Add every number by itself, instead of the counts of a block
    #[arg(long)]
    no_aggregation: bool,
}

impl ProblemOptions {
    pub(super) fn problem(&self) -> Result<Problem, Error> {
        let aggregates = !self.no_aggregation;
        let block = self.block.unwrap_or(if aggregates { 16_384 } else { 256 });
        Problem::new(self.numbers, self.bins, block, self.steps, aggregates)
    }
}
