//! Processes of a run, each of which has a recorder, and readings of their clocks.

use std::ops::Range;

/// Processes of a run, each of which has as many of the ranks, and consecutive ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunProcesses {
    /// Number of the process of the recorder.
    pub own: u32,
    /// Number of ranks of each process.
    pub ranks_each: u32,
    /// All processes, by their numbers.
    pub all: Vec<RunProcess>,
}

/// Process of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunProcess {
    /// Number of its machine, the same for all processes there.
    pub machine: u32,
    /// Number of its workers, which its ranks share.
    pub workers: u32,
}

impl RunProcesses {
    /// Returns the ranks of the process of the recorder.
    pub fn own_ranks(&self) -> Range<u32> {
        let first = self.own.saturating_mul(self.ranks_each);
        first..first.saturating_add(self.ranks_each)
    }

    /// Returns the number of all ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks_each.saturating_mul(self.all.len() as u32)
    }
}

/// Returns the stem of the files of the process whose first rank is `first`, in a trace whose files
/// have the stem `stem`.
pub fn stem_of_process(stem: &str, first: u32) -> String {
    format!("{stem}.rank-{first}")
}

/// Reading of the clock of process 0 by another process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockReading {
    /// Time of the clock of this process.
    pub here_ns: u64,
    /// Time of the clock of process 0 at this moment.
    pub there_ns: u64,
    /// Largest error of that.
    pub error_ns: u64,
}
