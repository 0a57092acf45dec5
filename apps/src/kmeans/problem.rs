//! K-means problem.

use std::ops::RangeInclusive;

use super::kernel;
use crate::Error;
use crate::run::{self, Work};

/// Points, and the clusters that they are put together in. Blocks of points are the units of work of
/// the task variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    points: usize,
    clusters: usize,
    block: usize,
    steps: usize,
}

impl Problem {
    /// Limits of the number of points, and of points in a block. The sums of more would not be exact.
    pub const POINTS: RangeInclusive<usize> = 1..=1 << 28;
    /// Limits of the number of clusters.
    pub const CLUSTERS: RangeInclusive<usize> = 1..=1 << 12;
    /// Limits of the number of steps.
    pub const STEPS: RangeInclusive<usize> = 1..=1_000_000;

    /// Creates a problem of `points` in blocks of `block`, in `clusters`.
    ///
    /// **Errors**: [`Error::OutOfRange`].
    pub fn new(points: usize, clusters: usize, block: usize, steps: usize) -> Result<Self, Error> {
        Ok(Self {
            points: Error::check_range("points", points, Self::POINTS)?,
            clusters: Error::check_range("clusters", clusters, Self::CLUSTERS)?,
            block: Error::check_range("block", block, Self::POINTS)?,
            steps: Error::check_range("steps", steps, Self::STEPS)?,
        })
    }

    /// Returns the number of points.
    pub fn points(&self) -> usize {
        self.points
    }

    /// Returns the number of clusters.
    pub fn clusters(&self) -> usize {
        self.clusters
    }

    /// Returns the number of points in a block.
    pub fn block(&self) -> usize {
        self.block
    }

    /// Returns the number of numbers of the sums of all clusters.
    pub(super) fn sums(&self) -> usize {
        kernel::SUMS * self.clusters
    }

    /// Returns the centres of the first step.
    pub(super) fn first_centres(&self) -> Vec<f64> {
        kernel::first_centres(self.clusters, self.points)
    }
}

impl run::Problem for Problem {
    fn parameters(&self) -> Vec<(&'static str, usize)> {
        let Self { points, clusters, block, steps } = *self;
        vec![("points", points), ("clusters", clusters), ("block", block), ("steps", steps)]
    }

    fn steps(&self) -> usize {
        self.steps
    }

    /// Returns the number of distances of all steps.
    fn work(&self) -> Work {
        let amount = self.points as f64 * self.clusters as f64 * self.steps as f64;
        Work { amount, unit: "Mdistances/s", field: "mdistances_per_s" }
    }

    fn result_bytes(&self) -> u64 {
        (kernel::AXES * self.clusters * size_of::<f64>()) as u64
    }

    /// Returns a problem with `factor` times the points.
    fn scaled(&self, factor: usize) -> Result<Self, Error> {
        Self::new(self.points.saturating_mul(factor), self.clusters, self.block, self.steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit_tests::assert_limits;

    #[test]
    fn every_limit_holds_on_both_sides() {
        let limits = [Problem::POINTS, Problem::CLUSTERS, Problem::POINTS, Problem::STEPS];
        assert_limits(["points", "clusters", "block", "steps"], limits, |n| {
            Problem::new(n[0], n[1], n[2], n[3])
        });
    }
}
