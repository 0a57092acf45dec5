//! The arguments of the call that makes a queue, which are the same at all ranks.

use crate::all_gather::{Call, Gathered};
use crate::error::Error;
use crate::numbers::Rank;

use super::signal::MOST_ITEMS;

/// Names of the numbers that the ranks compare.
const NUMBERS: [&str; 5] =
    ["receiver", "capacity", "size of an item", "number of senders", "digest of the senders"];

/// The arguments of one call, checked.
pub(super) struct Arguments {
    pub(super) receiver: Rank,
    /// Ranks that send, in order.
    pub(super) senders: Vec<Rank>,
    /// Number of items of the ring of a sender.
    pub(super) capacity: u32,
    item_bytes: usize,
}

impl Arguments {
    /// Checks the arguments of a rank.
    ///
    /// **Errors**: no such rank; a capacity of 0, or of more than 2^28 items.
    pub(super) fn new<T>(
        receiver: Rank,
        senders: impl Iterator<Item = Rank>,
        capacity: usize,
        ranks: u32,
    ) -> Result<Self, Error> {
        let mut senders: Vec<_> = senders.collect();
        senders.sort_unstable();
        senders.dedup();
        if let Some(&rank) = senders.iter().chain([&receiver]).find(|rank| rank.0 >= ranks) {
            return Err(Error::NoSuchRank { rank, ranks });
        }
        let (what, value) = ("number of items of a queue's ring", capacity as u64);
        if capacity == 0 {
            return Err(Error::Limit { what, value, limit: 1 });
        }
        let capacity = u32::try_from(capacity).ok().filter(|items| *items <= MOST_ITEMS);
        let limit = u64::from(MOST_ITEMS);
        let capacity = capacity.ok_or(Error::Limit { what, value, limit })?;
        Ok(Arguments { receiver, senders, capacity, item_bytes: size_of::<T>() })
    }

    /// Returns the number of elements of all rings.
    pub(super) fn elements(&self) -> usize {
        self.senders.len() * self.capacity as usize
    }

    /// Returns the place of a rank among the senders.
    pub(super) fn place_of(&self, rank: Rank) -> Option<usize> {
        self.senders.binary_search(&rank).ok()
    }

    fn numbers(&self) -> [u64; 5] {
        // FNV-1a.
        let add =
            |digest: u64, rank: &Rank| (digest ^ u64::from(rank.0)).wrapping_mul(0x100_0000_01b3);
        let digest = self.senders.iter().fold(0xcbf2_9ce4_8422_2325, add);
        let (receiver, capacity) = (self.receiver.0.into(), self.capacity.into());
        [receiver, capacity, self.item_bytes as u64, self.senders.len() as u64, digest]
    }

    /// Encodes the arguments, and the first id of the queue at this rank.
    pub(super) fn to_bytes(&self, id: u32) -> Vec<u8> {
        let mut bytes = self.numbers().map(u64::to_le_bytes).as_flattened().to_vec();
        bytes.extend(id.to_le_bytes());
        bytes
    }

    /// Compares the arguments of all ranks. Returns the first id of the queue at each.
    ///
    /// **Errors**: arguments that differ.
    pub(super) fn compare(&self, all: &Gathered) -> Result<Vec<u32>, Error> {
        all.each().map(|(rank, bytes)| self.compare_with(rank, bytes)).collect()
    }

    fn compare_with(&self, rank: Rank, bytes: &[u8]) -> Result<u32, Error> {
        let malformed = || {
            let what = format!("{} bytes as the arguments of a queue", bytes.len());
            Error::BadControlMessage { rank, what }
        };
        let (numbers, id) = bytes.split_last_chunk::<4>().ok_or_else(malformed)?;
        let (numbers, rest) = numbers.as_chunks::<8>();
        if numbers.len() != NUMBERS.len() || !rest.is_empty() {
            return Err(malformed());
        }
        let there = numbers.iter().map(|number| u64::from_le_bytes(*number));
        for ((what, here), there) in NUMBERS.into_iter().zip(self.numbers()).zip(there) {
            if here != there {
                let call = Call::RemoteQueue.name();
                return Err(Error::ArgumentsDiffer { call, what, rank, here, there });
            }
        }
        Ok(u32::from_le_bytes(*id))
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    fn arguments(senders: &[u32], capacity: usize) -> Result<Arguments, Error> {
        Arguments::new::<u64>(Rank(1), senders.iter().copied().map(Rank), capacity, 4)
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

    #[test]
    fn malformed_and_other_arguments_are_refused() {
        let own = arguments(&[0, 2], 5).unwrap();
        assert_eq!(own.compare_with(Rank(2), &own.to_bytes(77)).unwrap(), 77);
        for other in [arguments(&[0, 3], 5), arguments(&[0], 5), arguments(&[0, 2], 6)] {
            let refused = own.compare_with(Rank(2), &other.unwrap().to_bytes(77));
            assert!(matches!(refused, Err(Error::ArgumentsDiffer { rank: Rank(2), .. })));
        }
        let bytes = own.to_bytes(77);
        for len in 0..bytes.len() {
            let refused = own.compare_with(Rank(2), &bytes[..len]);
            assert!(matches!(refused, Err(Error::BadControlMessage { rank: Rank(2), .. })));
        }
    }
}
