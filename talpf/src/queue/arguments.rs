//! The arguments of the call that makes a queue, which are the same at all ranks.

use crate::all_gather::Call;
use crate::call_arguments::{CallArguments, sorted_ranks};
use crate::error::Error;
use crate::numbers::Rank;

use crate::signal::MOST_ITEMS;

/// The arguments of one call, checked.
pub(super) struct Arguments {
    pub(super) receiver: Rank,
    /// Ranks that send, in order.
    pub(super) senders: Vec<Rank>,
    /// Number of items of the ring of a sender.
    pub(super) capacity: u32,
}

impl Arguments {
    /// Checks the arguments of a rank.
    ///
    /// **Errors**: no such rank; a capacity of 0, or of more than 2^28 items.
    pub(super) fn new(
        receiver: Rank,
        senders: impl Iterator<Item = Rank>,
        capacity: usize,
        ranks: u32,
    ) -> Result<Self, Error> {
        let senders = sorted_ranks(senders, ranks)?;
        sorted_ranks([receiver], ranks)?;
        let (what, value) = ("number of items of a queue's ring", capacity as u64);
        if capacity == 0 {
            return Err(Error::Limit { what, value, limit: 1 });
        }
        let capacity = u32::try_from(capacity).ok().filter(|items| *items <= MOST_ITEMS);
        let limit = u64::from(MOST_ITEMS);
        let capacity = capacity.ok_or(Error::Limit { what, value, limit })?;
        Ok(Arguments { receiver, senders, capacity })
    }

    /// Returns the number of elements of all rings.
    pub(super) fn elements(&self) -> usize {
        self.senders.len() * self.capacity as usize
    }

    /// Returns the place of a rank among the senders.
    pub(super) fn place_of(&self, rank: Rank) -> Option<usize> {
        self.senders.binary_search(&rank).ok()
    }

    /// Returns the arguments of a queue of items `T`, as all ranks compare them.
    pub(super) fn of_items<T>(&self) -> CallArguments {
        CallArguments::new(Call::RemoteQueue)
            .with("receiver", self.receiver.0.into())
            .with("capacity", self.capacity.into())
            .with_item::<T>()
            .with_ranks("number of senders", "digest of the senders", &self.senders)
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    fn arguments(senders: &[u32], capacity: usize) -> Result<Arguments, Error> {
        Arguments::new(Rank(1), senders.iter().copied().map(Rank), capacity, 4)
    }

    #[test]
    fn both_sides_of_each_limit() {
        for capacity in [1, 1 << 28] {
            assert_eq!(arguments(&[0], capacity).unwrap().capacity as usize, capacity);
        }
        for capacity in [0, (1 << 28) + 1, usize::MAX] {
            assert!(matches!(arguments(&[0], capacity), Err(Error::Limit { .. })));
        }
        assert!(matches!(arguments(&[3, 4], 1), Err(Error::NoSuchRank { rank: Rank(4), .. })));
    }

    #[test]
    fn senders_have_places_in_their_order() {
        let arguments = arguments(&[3, 0, 3], 5).unwrap();
        assert_eq!(arguments.elements(), 10);
        assert_eq!([0, 1, 3].map(|rank| arguments.place_of(Rank(rank))), [Some(0), None, Some(1)]);
    }
}
