//! The arguments of a collective call, which all ranks compare.

use crate::all_gather::{Call, Gathered};
use crate::error::Error;
use crate::numbers::Rank;

/// Arguments of one rank, each a number with a name.
pub(crate) struct CallArguments {
    call: Call,
    numbers: Vec<(&'static str, u64)>,
}

impl CallArguments {
    pub(crate) fn new(call: Call) -> Self {
        CallArguments { call, numbers: Vec::new() }
    }

    /// Adds a number.
    pub(crate) fn with(mut self, what: &'static str, number: u64) -> Self {
        self.numbers.push((what, number));
        self
    }

    /// Adds the type of an item, by its size and its name.
    pub(crate) fn with_item<T>(self) -> Self {
        let name = std::any::type_name::<T>().bytes().map(u64::from);
        self.with("size of an item", size_of::<T>() as u64)
            .with("digest of the type of an item", digest(name))
    }

    /// Adds ranks, by their number and a digest.
    pub(crate) fn with_ranks(
        self,
        number: &'static str,
        all: &'static str,
        ranks: &[Rank],
    ) -> Self {
        let digest = digest(ranks.iter().map(|rank| rank.0.into()));
        self.with(number, ranks.len() as u64).with(all, digest)
    }

    /// Encodes the arguments, and a private id of this rank.
    pub(crate) fn to_bytes(&self, id: u32) -> Vec<u8> {
        let numbers = self.numbers.iter().flat_map(|(_, number)| number.to_le_bytes());
        numbers.chain(id.to_le_bytes()).collect()
    }

    /// Compares the arguments of all ranks. Returns the private id of each.
    ///
    /// **Errors**: arguments that differ.
    pub(crate) fn compare(&self, all: &Gathered) -> Result<Vec<u32>, Error> {
        all.each().map(|(rank, bytes)| self.compare_with(rank, bytes)).collect()
    }

    fn compare_with(&self, rank: Rank, bytes: &[u8]) -> Result<u32, Error> {
        let call = self.call.name();
        let malformed = || {
            let what = format!("{} bytes as the arguments of {call}", bytes.len());
            Error::BadControlMessage { rank, what }
        };
        let (numbers, id) = bytes.split_last_chunk::<4>().ok_or_else(malformed)?;
        let (numbers, rest) = numbers.as_chunks::<8>();
        if numbers.len() != self.numbers.len() || !rest.is_empty() {
            return Err(malformed());
        }
        let there = numbers.iter().map(|number| u64::from_le_bytes(*number));
        for ((what, here), there) in self.numbers.iter().copied().zip(there) {
            if here != there {
                return Err(Error::ArgumentsDiffer { call, what, rank, here, there });
            }
        }
        Ok(u32::from_le_bytes(*id))
    }
}

/// Sorts ranks that a call names. Each is there once.
///
/// **Errors**: no such rank.
pub(crate) fn sorted_ranks(
    named: impl IntoIterator<Item = impl Into<Rank>>,
    ranks: u32,
) -> Result<Vec<Rank>, Error> {
    let mut sorted: Vec<Rank> = named.into_iter().map(Into::into).collect();
    sorted.sort_unstable();
    sorted.dedup();
    match sorted.iter().find(|rank| rank.0 >= ranks) {
        Some(&rank) => Err(Error::NoSuchRank { rank, ranks }),
        None => Ok(sorted),
    }
}

/// Returns the digest of some numbers (FNV-1a).
fn digest(numbers: impl Iterator<Item = u64>) -> u64 {
    let add = |digest: u64, number: u64| (digest ^ number).wrapping_mul(0x100_0000_01b3);
    numbers.fold(0xcbf2_9ce4_8422_2325, add)
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    fn arguments(senders: &[u32], capacity: u64) -> CallArguments {
        let senders: Vec<Rank> = senders.iter().copied().map(Rank).collect();
        let arguments = CallArguments::new(Call::RemoteQueue).with("capacity", capacity);
        arguments.with_item::<u64>().with_ranks("number of senders", "senders", &senders)
    }

    #[test]
    fn malformed_and_other_arguments_are_refused() {
        let own = arguments(&[0, 2], 5);
        let other_type = CallArguments::new(Call::RemoteQueue).with("capacity", 5);
        let other_type = other_type.with_item::<[u8; 8]>();
        let other_type = other_type.with_ranks("number of senders", "senders", &[Rank(0), Rank(2)]);
        assert_eq!(own.compare_with(Rank(2), &own.to_bytes(77)).unwrap(), 77);
        for other in [arguments(&[0, 3], 5), arguments(&[0], 5), arguments(&[0, 2], 6), other_type]
        {
            let refused = own.compare_with(Rank(2), &other.to_bytes(77));
            assert!(matches!(refused, Err(Error::ArgumentsDiffer { rank: Rank(2), .. })));
        }
        let bytes = own.to_bytes(77);
        for len in 0..bytes.len() {
            let refused = own.compare_with(Rank(2), &bytes[..len]);
            assert!(matches!(refused, Err(Error::BadControlMessage { rank: Rank(2), .. })));
        }
    }

    #[test]
    fn ranks_are_sorted_and_must_exist() {
        assert_eq!(sorted_ranks([3, 0, 3], 4).unwrap(), [Rank(0), Rank(3)]);
        assert!(matches!(
            sorted_ranks([3, 4], 4),
            Err(Error::NoSuchRank { rank: Rank(4), ranks: 4 })
        ));
    }
}
