//! Credits for cells: the receiver reports the number of cells that it has taken and of eager
//! messages that it has matched.
//!
//! Both counts are absolute, so a report that is lost or late does no harm. Both wrap, each in one
//! half of a word that the receiver's device writes at the sender. A sender that sees a count sees
//! everything that the receiver did with the cells before it reported them.

use talpf_primitives::{AtomicU64, Ordering};

use super::ring_buffer::CELLS;

/// Credits of a sender, as last reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Credits {
    /// Number of cells taken.
    taken: u32,
    /// Number of eager messages matched: a short one counts one, a longer one as many as its cells.
    released: u32,
}

impl Credits {
    /// Reads the credits from the word that the peer writes.
    #[inline]
    pub(super) fn load(word: &AtomicU64) -> Self {
        let word = word.load(Ordering::Acquire);
        Credits { taken: word as u32, released: (word >> 32) as u32 }
    }

    /// Packs the counts into the word that reports them.
    pub(super) fn word(taken: u64, released: u64) -> u64 {
        u64::from(taken as u32) | u64::from(released as u32) << 32
    }

    /// Returns `true` if the ring has room for so many cells after cell number `tail`.
    #[inline]
    pub(super) fn has_room(self, tail: u64, cells: usize) -> bool {
        let in_flight = (tail as u32).wrapping_sub(self.taken);
        in_flight as usize + cells <= CELLS
    }

    /// Returns `true` if the peer will keep an unmatched eager message of so many cells, after
    /// `eager` cells of such messages were sent.
    #[inline]
    pub(super) fn has_quota(self, eager: u64, quota: usize, cells: usize) -> bool {
        let unmatched = (eager as u32).wrapping_sub(self.released);
        unmatched as usize + cells <= quota
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    /// Both sides of both limits, also where the halves of the word go round.
    #[test]
    fn there_is_room_up_to_the_limit_wherever_counts_go_round() {
        for start in [0, u64::from(u32::MAX) - 2, (1 << 40) - 1, u64::MAX - CELLS as u64] {
            let word = AtomicU64::new(Credits::word(start, start));
            let credits = Credits::load(&word);
            let end = start + CELLS as u64;
            assert!(credits.has_room(start, CELLS) && !credits.has_room(start, CELLS + 1));
            assert!(credits.has_room(end - 1, 1) && !credits.has_room(end, 1));
            assert!(credits.has_quota(start + 9, 10, 1) && !credits.has_quota(start + 10, 10, 1));
        }
    }
}
