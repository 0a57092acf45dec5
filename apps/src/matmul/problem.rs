//! Multiplication problem.

use std::ops::{Range, RangeInclusive};

use crate::Error;
use crate::run::{self, Work};

/// Square matrices `A` and `B` of `size x size` in blocks of `block` rows, and the number of times
/// that `A` becomes `A B`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    size: usize,
    block: usize,
    iterations: usize,
}

impl Problem {
    /// Limits of the sizes of a matrix and of a block.
    pub const SIZES: RangeInclusive<usize> = 1..=1 << 20;
    /// Limits of the number of multiplications.
    pub const ITERATIONS: RangeInclusive<usize> = 1..=1_000_000_000;

    /// Creates a problem of `size x size` numbers.
    ///
    /// **Errors**: [`Error::OutOfRange`].
    pub fn new(size: usize, block: usize, iterations: usize) -> Result<Self, Error> {
        Ok(Self {
            size: Error::check_range("size", size, Self::SIZES)?,
            block: Error::check_range("block", block, Self::SIZES)?,
            iterations: Error::check_range("iterations", iterations, Self::ITERATIONS)?,
        })
    }

    /// Returns the number of rows and columns of the matrices.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the number of rows of a block.
    pub fn block(&self) -> usize {
        self.block
    }

    /// Returns the number of multiplications.
    pub fn iterations(&self) -> usize {
        self.iterations
    }

    /// Returns the number of row blocks.
    pub(super) fn blocks(&self) -> usize {
        self.size.div_ceil(self.block)
    }

    /// Returns the rows of some blocks.
    pub(super) fn extent(&self, blocks: Range<usize>) -> Range<usize> {
        let end = |block: usize| (block * self.block).min(self.size);
        end(blocks.start)..end(blocks.end)
    }

    /// Returns the bytes of one matrix.
    pub(crate) fn matrix_bytes(&self) -> u64 {
        (self.size as u64).pow(2) * size_of::<f64>() as u64
    }
}

impl run::Problem for Problem {
    fn parameters(&self) -> Vec<(&'static str, usize)> {
        vec![("size", self.size), ("block", self.block), ("iterations", self.iterations)]
    }

    fn steps(&self) -> usize {
        self.iterations
    }

    /// Returns the number of multiplications and additions of numbers.
    fn work(&self) -> Work {
        let amount = 2.0 * (self.size as f64).powi(3) * self.iterations as f64;
        Work { amount, unit: "Mflop/s", field: "mflop_per_s" }
    }

    fn result_bytes(&self) -> u64 {
        self.matrix_bytes()
    }

    /// Returns a problem with `factor` times the number of multiplications.
    fn scaled(&self, factor: usize) -> Result<Self, Error> {
        let size = (self.size as f64 * (factor as f64).cbrt()).round() as usize;
        Self::new(size, self.block, self.iterations)
    }
}
