//! The placement of processes on machines, and sharing of cores that follows from it.

use std::array;

use talpf_runtime::{CoreMask, core_mask, machine_id};

/// The machine of a process, and its claim to the cores there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    machine: u64,
    workers: u32,
    cores: CoreMask,
}

impl Placement {
    /// Words of a placement in a message.
    pub(super) const WORDS: usize = 3 + 2 * size_of::<CoreMask>() / size_of::<u64>();

    /// Returns the placement of this process.
    pub(super) fn here(workers: usize) -> Self {
        let workers = u32::try_from(workers).unwrap_or(u32::MAX);
        Placement { machine: machine_id(), workers, cores: core_mask() }
    }

    /// Returns the number of the machine.
    pub(super) fn machine(&self) -> u64 {
        self.machine
    }

    /// Returns the number of workers of the process.
    pub(super) fn workers(&self) -> u32 {
        self.workers
    }

    pub(super) fn to_words(&self) -> impl Iterator<Item = u32> {
        let halves = |word: u64| [word as u32, (word >> 32) as u32];
        let cores = self.cores.into_iter().flat_map(halves);
        halves(self.machine).into_iter().chain([self.workers]).chain(cores)
    }

    /// Decodes the placement that a process has sent as [`Placement::WORDS`] words.
    pub(super) fn from_words(mut words: impl Iterator<Item = u32>) -> Self {
        let mut word = || words.next().unwrap_or(0);
        let whole = |next: &mut dyn FnMut() -> u32| u64::from(next()) | u64::from(next()) << 32;
        let (machine, workers) = (whole(&mut word), word());
        Placement { machine, workers, cores: array::from_fn(|_| whole(&mut word)) }
    }

    /// Returns `true` if the processes of this machine, among `all`, have more workers than cores.
    pub(super) fn is_oversubscribed(&self, all: &[Placement]) -> bool {
        let (mut workers, mut cores) = (0, CoreMask::default());
        for process in all.iter().filter(|process| process.machine == self.machine) {
            workers += u64::from(process.workers);
            cores.iter_mut().zip(process.cores).for_each(|(all, own)| *all |= own);
        }
        workers > cores.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    fn on(machine: u64, workers: u32, first: u64) -> Placement {
        let mut cores = CoreMask::default();
        (cores[0], cores[15]) = (first, 0);
        Placement { machine, workers, cores }
    }

    #[test]
    fn a_placement_arrives_as_it_was_sent() {
        let mut sent = on(u64::MAX - 7, 1024, 1 << 63 | 1);
        sent.cores[15] = 1 << 62;
        assert_eq!(Placement::from_words(sent.to_words()), sent);
        let here = Placement::here(3);
        assert_eq!(Placement::from_words(here.to_words()), here);
        assert_eq!(sent.to_words().count(), Placement::WORDS);
    }

    #[test]
    fn workers_of_one_machine_are_counted_against_the_cores_they_share() {
        let shared = [on(1, 1, 0b11), on(1, 1, 0b11), on(2, 9, 0b11)];
        assert!(!shared[0].is_oversubscribed(&shared));
        assert!(shared[2].is_oversubscribed(&shared));
        let more = [on(1, 2, 0b11), on(1, 1, 0b11)];
        assert!(more[0].is_oversubscribed(&more));
        let pinned_apart = [on(1, 1, 0b01), on(1, 1, 0b10)];
        assert!(!pinned_apart[0].is_oversubscribed(&pinned_apart));
        let pinned_together = [on(1, 1, 0b01), on(1, 1, 0b01)];
        assert!(pinned_together[0].is_oversubscribed(&pinned_together));
    }
}
