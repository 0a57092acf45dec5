//! Dissemination: all ranks learn that all ranks have come, in as many steps as the logarithm of
//! their number.
//!
//! In step `k` every rank sends a message to the rank 2^k after it, once it has those of all steps
//! before. The message of step `k` says that the 2^k ranks up to its sender have come: the sender
//! itself, and in each step before it has learnt of as many ranks again. A rank with the messages
//! of all steps knows of all ranks.
//!
//! Two ranks meet in one step at most, so that the step of a message follows from the ranks.
//!
//! **Source**: Hensgen, Finkel, Manber, *Two algorithms for barrier synchronization* (1988).

use crate::numbers::Rank;

/// Number of ranks from `source` on to `rank`.
fn distance(source: Rank, rank: Rank, ranks: u32) -> u32 {
    (rank.0 + ranks - source.0) % ranks
}

/// Returns the rank that `rank` sends the message of `step` to, if there is such a step.
#[inline]
pub(super) fn target(rank: Rank, step: u32, ranks: u32) -> Option<Rank> {
    let distance = 1u32.checked_shl(step).filter(|distance| *distance < ranks)?;
    Some(Rank((rank.0 + distance) % ranks))
}

/// Returns the rank whose message `rank` has in `step`.
pub(super) fn source(rank: Rank, step: u32, ranks: u32) -> Rank {
    let distance = (1u64 << step) % u64::from(ranks);
    Rank((rank.0 + ranks - distance as u32) % ranks)
}

/// Returns the step in which `source` sends its message to `rank`, if it sends one.
#[inline]
pub(super) fn step_between(source: Rank, rank: Rank, ranks: u32) -> Option<u32> {
    let distance = distance(source, rank, ranks);
    distance.is_power_of_two().then(|| distance.trailing_zeros())
}

/// The steps whose messages a rank has, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps(u32);

impl Steps {
    #[inline]
    pub(super) fn add(&mut self, step: u32) {
        self.0 |= 1 << step;
    }

    #[inline]
    pub(super) fn has(self, step: u32) -> bool {
        self.0 & 1 << step != 0
    }

    /// Returns whether these are all steps of so many `ranks`.
    #[inline]
    pub(super) fn are_all(self, ranks: u32) -> bool {
        let count = ranks.next_power_of_two().trailing_zeros();
        self.0.trailing_ones() >= count
    }

    /// Returns whether `rank`, which has the messages of these steps, knows that `source` has come.
    pub(super) fn tell_of(self, source: Rank, rank: Rank, ranks: u32) -> bool {
        let distance = distance(source, rank, ranks);
        // The last step goes round: it tells once more of ranks that are near.
        let ways = [u64::from(distance), u64::from(distance) + u64::from(ranks)];
        distance == 0
            || ways.into_iter().any(|way| way.ilog2() < u32::BITS && self.has(way.ilog2()))
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests;
