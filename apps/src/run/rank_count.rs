//! Number of ranks of a run in several processes.

use super::Machine;
use crate::Error;

/// Number of ranks of a run in several processes, each of which has as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankCount {
    /// Number of all ranks.
    All(usize),
    /// Number of ranks of each process.
    Each(usize),
}

impl Default for RankCount {
    fn default() -> Self {
        Self::Each(1)
    }
}

impl RankCount {
    /// Returns the number of all ranks in `processes` processes, without a check.
    pub(super) fn unchecked(self, processes: usize) -> usize {
        match self {
            Self::All(ranks) => ranks,
            Self::Each(each) => each.saturating_mul(processes),
        }
    }

    /// Returns the number of all ranks in `processes` processes.
    ///
    /// **Errors**: [`Error::OutOfRange`]; [`Error::NotDivided`] if it is not a multiple of the number of
    /// processes.
    pub(super) fn of(self, processes: usize) -> Result<usize, Error> {
        let ranks = self.unchecked(processes);
        let name = match self {
            Self::All(_) => "ranks",
            Self::Each(each) => {
                Error::check_range("ranks per process", each, Machine::RANKS)?;
                "processes times ranks per process"
            }
        };
        Error::check_range(name, ranks, Machine::RANKS)?;
        match ranks.is_multiple_of(processes) {
            true => Ok(ranks),
            false => Err(Error::NotDivided { ranks, processes }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(count: RankCount, processes: usize) -> String {
        count.of(processes).unwrap_err().to_string()
    }

    #[test]
    fn every_process_has_as_many_ranks() {
        assert_eq!(RankCount::default().of(3).unwrap(), 3);
        assert_eq!(RankCount::All(6).of(3).unwrap(), 6);
        assert_eq!(RankCount::Each(2).of(3).unwrap(), 6);
        let error = error_of(RankCount::All(5), 3);
        assert_eq!(error, "ranks is 5, expected a multiple of 3, the number of processes");
    }

    #[test]
    fn every_limit_holds_on_both_sides() {
        for (count, processes) in [
            (RankCount::All(1), 1),
            (RankCount::All(4096), 2),
            (RankCount::Each(1), 1),
            (RankCount::Each(4096), 1),
            (RankCount::Each(2048), 2),
        ] {
            assert!(count.of(processes).is_ok(), "{count:?}");
        }
        for bad in [0, 4097] {
            let error = error_of(RankCount::All(bad), 1);
            assert_eq!(error, format!("ranks is {bad}, expected 1 to 4096"));
            let error = error_of(RankCount::Each(bad), 1);
            assert_eq!(error, format!("ranks per process is {bad}, expected 1 to 4096"));
        }
        let error = error_of(RankCount::Each(2049), 2);
        assert_eq!(error, "processes times ranks per process is 4098, expected 1 to 4096");
    }
}
