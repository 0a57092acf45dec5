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
    /// Returns the processes of a run, each given as the identifier of its machine and the number of its
    /// workers.
    pub fn new(own: u32, ranks_each: u32, all: impl Iterator<Item = (u64, u32)>) -> Self {
        let all: Vec<_> = all.collect();
        let number = |machine| all.iter().position(|(of, _)| *of == machine).unwrap_or(0) as u32;
        let all =
            all.iter().map(|&(machine, workers)| RunProcess { machine: number(machine), workers });
        Self { own, ranks_each, all: all.collect() }
    }

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

impl ClockReading {
    /// Questions to each process, one after another, of which the best answer becomes the reading.
    pub const QUESTIONS: u32 = 100;

    /// No reading yet: any other one is better.
    pub const UNKNOWN: Self = Self { here_ns: 0, there_ns: 0, error_ns: u64::MAX };

    /// Returns the reading of a process that has answered with its time, when the clock of process 0 was
    /// `asked_ns` before the question and `answered_ns` after the answer. The answer was given at some
    /// moment in between, so that half of the round trip bounds the error.
    pub fn of_answer(here_ns: u64, asked_ns: u64, answered_ns: u64) -> Self {
        let round_trip_ns = answered_ns.saturating_sub(asked_ns);
        let there_ns = asked_ns + round_trip_ns / 2;
        Self { here_ns, there_ns, error_ns: round_trip_ns.div_ceil(2) }
    }

    /// Returns the one of two readings whose error is smaller.
    #[must_use]
    pub fn or_better(self, other: Self) -> Self {
        if other.error_ns < self.error_ns { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_one_machine_have_its_number() {
        let processes = RunProcesses::new(1, 2, [(77, 4), (9, 1), (77, 2)].into_iter());
        let machines: Vec<_> = processes.all.iter().map(|of| (of.machine, of.workers)).collect();
        assert_eq!(machines, [(0, 4), (1, 1), (0, 2)]);
        assert_eq!((processes.own_ranks(), processes.ranks()), (2..4, 6));
    }

    #[test]
    fn the_answer_of_the_shortest_round_trip_is_the_best() {
        let slow = ClockReading::of_answer(500, 1_000, 1_100);
        let fast = ClockReading::of_answer(520, 1_100, 1_111);
        assert_eq!(fast, ClockReading { here_ns: 520, there_ns: 1_105, error_ns: 6 });
        assert_eq!(ClockReading::UNKNOWN.or_better(slow).or_better(fast).or_better(slow), fast);
    }
}
