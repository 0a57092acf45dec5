//! Problem of the Mandelbrot set.

use std::ops::{Range, RangeInclusive};

use super::kernel;
use crate::Error;
use crate::run::{self, Work};

/// Pictures of `size x size` points. Blocks of rows are the pieces that ranks compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    size: usize,
    limit: usize,
    block: usize,
    steps: usize,
}

impl Problem {
    /// Limits of the number of rows of a picture, and of a block.
    pub const SIZE: RangeInclusive<usize> = 1..=1 << 14;
    /// Limits of the number of iterations of a point.
    pub const LIMIT: RangeInclusive<usize> = 1..=1_000_000;
    /// Limits of the number of steps, each a picture.
    pub const STEPS: RangeInclusive<usize> = 1..=10_000;

    /// Creates a problem of `size x size` points of at most `limit` iterations, in blocks of `block`
    /// rows.
    ///
    /// **Errors**: [`Error::OutOfRange`].
    pub fn new(size: usize, limit: usize, block: usize, steps: usize) -> Result<Self, Error> {
        Ok(Self {
            size: Error::check_range("size", size, Self::SIZE)?,
            limit: Error::check_range("limit", limit, Self::LIMIT)?,
            block: Error::check_range("block", block, Self::SIZE)?,
            steps: Error::check_range("steps", steps, Self::STEPS)?,
        })
    }

    /// Returns the number of blocks of a picture.
    pub fn pieces(&self) -> usize {
        self.size.div_ceil(self.block)
    }

    fn rows(&self, piece: usize) -> Range<usize> {
        let start = piece * self.block;
        start..self.size.min(start + self.block)
    }

    /// Returns the step and the piece with a number among the pieces of all steps.
    pub(super) fn piece(&self, number: u64) -> (usize, usize) {
        let (number, pieces) = (number as usize, self.pieces());
        (number / pieces, number % pieces)
    }

    /// Returns the count of a piece of a step, which is also its work.
    pub(super) fn count(&self, step: usize, piece: usize) -> u64 {
        kernel::rows(step, self.rows(piece), self.size, self.limit)
    }
}

impl run::Problem for Problem {
    fn parameters(&self) -> Vec<(&'static str, usize)> {
        let Self { size, limit, block, steps } = *self;
        vec![("size", size), ("limit", limit), ("block", block), ("steps", steps)]
    }

    fn steps(&self) -> usize {
        self.steps
    }

    /// Returns the number of points of all steps.
    fn work(&self) -> Work {
        let amount = (self.size * self.size) as f64 * self.steps as f64;
        Work { amount, unit: "Mpoints/s", field: "mpoints_per_s" }
    }

    fn result_bytes(&self) -> u64 {
        (self.pieces() * size_of::<f64>()) as u64
    }

    /// Returns a problem with `factor` times the pictures.
    fn scaled(&self, factor: usize) -> Result<Self, Error> {
        Self::new(self.size, self.limit, self.block, self.steps.saturating_mul(factor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit_tests::assert_limits;

    #[test]
    fn every_limit_holds_on_both_sides() {
        let limits = [Problem::SIZE, Problem::LIMIT, Problem::SIZE, Problem::STEPS];
        assert_limits(["size", "limit", "block", "steps"], limits, |n| {
            Problem::new(n[0], n[1], n[2], n[3])
        });
    }

    #[test]
    fn pieces_have_all_rows_once() {
        for (size, block) in [(1, 1), (10, 3), (3, 10), (12, 4)] {
            let problem = Problem::new(size, 9, block, 1).unwrap();
            let rows = (0..problem.pieces()).flat_map(|piece| problem.rows(piece));
            assert!(rows.eq(0..size));
        }
    }
}
