//! Histogram problem.

use std::ops::RangeInclusive;

use crate::Error;
use crate::run::{self, Work};

/// Random numbers in each step, and the bins that they are counted in. Blocks of numbers are the
/// units of work of the task variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    numbers: usize,
    bins: usize,
    block: usize,
    steps: usize,
    aggregates: bool,
}

impl Problem {
    /// Limits of the number of numbers in a step, and in a block.
    pub const NUMBERS: RangeInclusive<usize> = 1..=1 << 30;
    /// Limits of the number of bins.
    pub const BINS: RangeInclusive<usize> = 1..=1 << 20;
    /// Limits of the number of steps.
    pub const STEPS: RangeInclusive<usize> = 1..=1_000_000;

    /// Creates a problem of `numbers` in each step, in blocks of `block`, which are counted before
    /// they are added to the bins if `aggregates`.
    ///
    /// **Errors**: [`Error::OutOfRange`].
    pub fn new(
        numbers: usize,
        bins: usize,
        block: usize,
        steps: usize,
        aggregates: bool,
    ) -> Result<Self, Error> {
        Ok(Self {
            numbers: Error::check_range("numbers", numbers, Self::NUMBERS)?,
            bins: Error::check_range("bins", bins, Self::BINS)?,
            block: Error::check_range("block", block, Self::NUMBERS)?,
            steps: Error::check_range("steps", steps, Self::STEPS)?,
            aggregates,
        })
    }

    /// Returns the number of numbers in a step.
    pub fn numbers(&self) -> usize {
        self.numbers
    }

    /// Returns the number of bins.
    pub fn bins(&self) -> usize {
        self.bins
    }

    /// Returns the number of numbers in a block.
    pub fn block(&self) -> usize {
        self.block
    }

    /// Returns `true` if blocks are counted before they are added.
    pub fn aggregates(&self) -> bool {
        self.aggregates
    }

    /// Returns the largest number of additions of a block.
    pub(super) fn additions(&self) -> usize {
        if self.aggregates { self.bins } else { self.block.min(self.numbers) }
    }

    /// Returns the bytes of all bins.
    pub(super) fn bin_bytes(&self) -> u64 {
        (self.bins * size_of::<u64>()) as u64
    }
}

impl run::Problem for Problem {
    fn parameters(&self) -> Vec<(&'static str, usize)> {
        let Self { numbers, bins, block, steps, aggregates } = *self;
        let aggregates = usize::from(aggregates);
        vec![
            ("numbers", numbers),
            ("bins", bins),
            ("block", block),
            ("steps", steps),
            ("aggregate", aggregates),
        ]
    }

    fn steps(&self) -> usize {
        self.steps
    }

    /// Returns the number of numbers of all steps.
    fn work(&self) -> Work {
        let amount = self.numbers as f64 * self.steps as f64;
        Work { amount, unit: "Mupdates/s", field: "mupdates_per_s" }
    }

    fn result_bytes(&self) -> u64 {
        self.bin_bytes()
    }

    /// Returns a problem with `factor` times the numbers.
    fn scaled(&self, factor: usize) -> Result<Self, Error> {
        let numbers = self.numbers.saturating_mul(factor);
        Self::new(numbers, self.bins, self.block, self.steps, self.aggregates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit_tests::assert_limits;

    #[test]
    fn every_limit_holds_on_both_sides() {
        let limits = [Problem::NUMBERS, Problem::BINS, Problem::NUMBERS, Problem::STEPS];
        assert_limits(["numbers", "bins", "block", "steps"], limits, |n| {
            Problem::new(n[0], n[1], n[2], n[3], true)
        });
    }
}
