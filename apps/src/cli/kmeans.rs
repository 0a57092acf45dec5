//! Options of k-means.

use clap::Args;
use talpf_apps::Error;
use talpf_apps::kmeans::Problem;

use super::number_within::number_within;

/// Points, clusters, and the number of steps.
#[derive(Args, Debug)]
pub(super) struct ProblemOptions {
    /// Points, which are distributed over the ranks
    #[arg(long, value_name = "N", value_parser = number_within(Problem::POINTS),
          default_value_t = 1 << 16)]
    points: usize,

    /// Clusters that the points are put together in
    #[arg(long, value_name = "K", value_parser = number_within(Problem::CLUSTERS),
          default_value_t = 16)]
    clusters: usize,

    /// Points in a block, the unit of work of tasks
    #[arg(long, value_name = "B", value_parser = number_within(Problem::POINTS),
          default_value_t = 2048)]
    block: usize,

    /// Steps to compute
    #[arg(long, value_name = "T", value_parser = number_within(Problem::STEPS),
          default_value_t = 200)]
    steps: usize,
}

impl ProblemOptions {
    pub(super) fn problem(&self) -> Result<Problem, Error> {
        Problem::new(self.points, self.clusters, self.block, self.steps)
    }
}
