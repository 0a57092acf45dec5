//! Distribution of ranks over processes: each process has as many, and consecutive ones.

use std::ops::Range;

use crate::numbers::Rank;

/// Ranks of each process of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Distribution {
    /// Number of this process.
    process: u32,
    processes: u32,
    /// Number of ranks of each process.
    each: u32,
}

impl Distribution {
    /// Creates the distribution of a run whose `process` of `processes` is this one, with `each`
    /// ranks in every process.
    pub(crate) fn new(process: u32, processes: u32, each: u32) -> Self {
        Distribution { process, processes, each }
    }

    /// Returns the ranks of a process.
    pub(crate) fn of(self, process: u32) -> Range<u32> {
        process * self.each..(process + 1) * self.each
    }

    /// Returns the ranks of this process.
    pub(crate) fn here(self) -> Range<u32> {
        self.of(self.process)
    }

    /// Returns the first rank of this process, which speaks for all of them.
    pub(super) fn first_here(self) -> Rank {
        Rank(self.here().start)
    }

    /// Returns the number of a rank among those of this process; `None` for a remote one.
    pub(super) fn index_here(self, rank: Rank) -> Option<usize> {
        self.here().contains(&rank.0).then(|| (rank.0 - self.here().start) as usize)
    }

    /// Returns the process of a rank.
    pub(super) fn process_of(self, rank: Rank) -> u32 {
        rank.0 / self.each
    }

    /// Returns the number of this process.
    pub(super) fn process(self) -> u32 {
        self.process
    }

    /// Returns the number of processes.
    pub(super) fn processes(self) -> u32 {
        self.processes
    }

    /// Iterates over the other processes.
    pub(super) fn others(self) -> impl Iterator<Item = u32> {
        (0..self.processes).filter(move |process| *process != self.process)
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn processes_have_consecutive_ranks() {
        let distribution = Distribution::new(1, 3, 4);
        assert_eq!((distribution.here(), distribution.of(2)), (4..8, 8..12));
        assert_eq!([3, 4, 7, 8].map(|rank| distribution.process_of(Rank(rank))), [0, 1, 1, 2]);
        let index = |rank| distribution.index_here(Rank(rank));
        assert_eq!([3, 4, 7, 8].map(index), [None, Some(0), Some(3), None]);
        assert!(distribution.others().eq([0, 2]));
    }
}
