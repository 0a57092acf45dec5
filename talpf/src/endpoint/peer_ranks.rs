//! The ranks at the other ends of the queue pairs of a run.

use std::iter;
use std::sync::OnceLock;

use ibverbs_sim::QueuePairNumber;
use talpf_primitives::{AtomicU32, Ordering};

use super::doubling;
use crate::numbers::Rank;

const FIRST_SHIFT: u32 = 6;
const CHUNKS: usize = (u32::BITS - FIRST_SHIFT) as usize;

/// Entry of an index without a queue pair.
const NONE: u32 = u32::MAX;

/// A table from the index of a queue pair's number to the rank of its peer. All ranks of a run in
/// one process share it, as their queue pairs are of one device.
///
/// Entries are in chunks that never move, each twice as long as the one before. An entry is written
/// before the first request of its queue pair, and read by those who have polled a completion of
/// that, so after it.
pub(super) struct PeerRanks {
    chunks: [OnceLock<Box<[AtomicU32]>>; CHUNKS],
}

impl PeerRanks {
    pub(super) fn new() -> Self {
        PeerRanks { chunks: [const { OnceLock::new() }; CHUNKS] }
    }

    pub(super) fn set(&self, number: QueuePairNumber, rank: Rank) {
        let (chunk, offset) = place(number);
        let entries = 1 << (FIRST_SHIFT as usize + chunk);
        let none = || iter::repeat_with(|| AtomicU32::new(NONE)).take(entries).collect();
        self.chunks[chunk].get_or_init(none)[offset].store(rank.0, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn get(&self, number: QueuePairNumber) -> Option<Rank> {
        let (chunk, offset) = place(number);
        let entry = self.chunks[chunk].get()?.get(offset)?;
        // The queue of completions has ordered this after the store.
        let rank = entry.load(Ordering::Relaxed);
        (rank != NONE).then_some(Rank(rank))
    }
}

/// Returns chunk and offset of a number.
#[inline]
fn place(number: QueuePairNumber) -> (usize, usize) {
    let (chunk, offset) = doubling::place(number.index(), FIRST_SHIFT);
    (chunk, offset as usize)
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_its_own_rank() {
        let ranks = PeerRanks::new();
        let number = QueuePairNumber::from_u32;
        assert_eq!(ranks.get(number(3)), None);
        (0..1000).for_each(|index| ranks.set(number(index), Rank(2 * index)));
        assert!((0..1000).all(|index| ranks.get(number(index)) == Some(Rank(2 * index))));
        assert_eq!(ranks.get(number(1000)), None);
        assert_eq!(ranks.get(number(1 << 19)), None);
    }
}
