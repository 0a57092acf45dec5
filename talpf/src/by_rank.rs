//! A value for every rank, of which most programs use few.

use std::array;

use talpf_primitives::OnceLock;

use crate::numbers::Rank;

/// Values that are made together.
const BLOCK: usize = 32;

/// A value for each rank of a run. Those of ranks that nobody has asked for take no memory: tables of all
/// ranks would grow with the square of their number.
pub(crate) struct ByRank<T> {
    ranks: u32,
    blocks: Box<[OnceLock<Box<[T; BLOCK]>>]>,
}

impl<T: Default> ByRank<T> {
    pub(crate) fn new(ranks: u32) -> Self {
        let blocks = (ranks as usize).div_ceil(BLOCK);
        ByRank { ranks, blocks: (0..blocks).map(|_| OnceLock::new()).collect() }
    }

    /// Returns the number of ranks.
    #[inline]
    pub(crate) fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Returns the value of a rank, if it was ever made.
    #[inline]
    pub(crate) fn get(&self, rank: Rank) -> Option<&T> {
        let block = self.blocks[rank.index() / BLOCK].get()?;
        Some(&block[rank.index() % BLOCK])
    }

    /// Returns the value of a rank.
    #[inline]
    pub(crate) fn of(&self, rank: Rank) -> &T {
        let make = || Box::new(array::from_fn(|_| T::default()));
        &self.blocks[rank.index() / BLOCK].get_or_init(make)[rank.index() % BLOCK]
    }

    /// Iterates over the values that were made, in the order of their ranks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Rank, &T)> {
        let made = self.blocks.iter().zip((0..).step_by(BLOCK));
        let made = made.filter_map(|(block, first)| Some((block.get()?, first)));
        made.flat_map(|(block, first)| (first..self.ranks).map(Rank).zip(&**block))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let blocks = self.blocks.iter_mut().zip((0..self.ranks as usize).step_by(BLOCK));
        let made = blocks.filter_map(|(block, first)| Some((block.get_mut()?, first)));
        made.flat_map(|(block, first)| block.iter_mut().take(self.ranks as usize - first))
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn values_are_those_of_their_ranks_and_made_when_used() {
        let mut table = ByRank::<AtomicU32>::new(1_000);
        let used = [0, 31, 32, 500, 999];
        assert!(table.get(Rank(500)).is_none());
        used.iter().for_each(|&rank| table.of(Rank(rank)).store(rank + 1, Ordering::Relaxed));
        assert_eq!(table.get(Rank(500)).unwrap().load(Ordering::Relaxed), 501);
        assert!(table.get(Rank(300)).is_none());
        let of = |(rank, value): (Rank, &AtomicU32)| (rank.0, value.load(Ordering::Relaxed));
        let set: Vec<_> = table.iter().map(of).filter(|(_, value)| *value > 0).collect();
        assert_eq!(set, used.map(|rank| (rank, rank + 1)));
        assert_eq!(table.iter().count(), 3 * BLOCK + 1_000 % BLOCK);
        assert_eq!(table.iter_mut().count(), 3 * BLOCK + 1_000 % BLOCK);
        table.iter_mut().for_each(|value| *value.get_mut() = 0);
        assert!(table.iter().all(|of_rank| of(of_rank).1 == 0));
    }
}
