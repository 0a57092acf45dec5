//! What a variant may run on.

use std::ops::RangeInclusive;

use crate::Error;

/// Ranks, and the worker threads that they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    ranks: usize,
    workers: usize,
}

impl Machine {
    /// How many ranks there may be.
    pub const RANKS: RangeInclusive<usize> = 1..=1024;
    /// How many workers there may be.
    pub const WORKERS: RangeInclusive<usize> = 1..=1024;

    /// One rank on one worker.
    pub const ONE: Self = Self { ranks: 1, workers: 1 };

    /// A machine of `ranks` ranks on `workers` worker threads.
    ///
    /// **Errors**: [`Error::OutOfRange`].
    pub fn new(ranks: usize, workers: usize) -> Result<Self, Error> {
        Ok(Self {
            ranks: Error::check_range("ranks", ranks, Self::RANKS)?,
            workers: Error::check_range("workers", workers, Self::WORKERS)?,
        })
    }

    /// The part of this machine that a variant has use for; both numbers must be at least one.
    pub fn at_most(self, ranks: usize, workers: usize) -> Self {
        Self { ranks: self.ranks.min(ranks), workers: self.workers.min(workers) }
    }

    /// Number of ranks.
    pub fn ranks(self) -> usize {
        self.ranks
    }

    /// Number of worker threads, of all ranks together.
    pub fn workers(self) -> usize {
        self.workers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_holds_on_both_sides() {
        for good in [1, 1024] {
            assert!(Machine::new(good, good).is_ok());
        }
        for bad in [0, 1025] {
            let ranks = Machine::new(bad, 1).unwrap_err().to_string();
            assert_eq!(ranks, format!("ranks is {bad}, expected 1 to 1024"));
            let workers = Machine::new(1, bad).unwrap_err().to_string();
            assert_eq!(workers, format!("workers is {bad}, expected 1 to 1024"));
        }
    }
}
