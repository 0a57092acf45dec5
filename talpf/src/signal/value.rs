//! Signals as the values of notifications.

/// Number of bits of a count.
const BITS: u32 = 30;
/// Largest number of items in the ring of a sender: counts of items under way differ by so many that
/// an old one is known from a new one.
pub(crate) const MOST_ITEMS: u32 = 1 << 28;

/// Signal of one end to the other one. Items are those of a queue, values or phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// The number of all that was ever signalled: of a sender the items that it has put, of the
    /// receiver those of the sender that it has taken, which is its credit.
    Count(Count),
    /// The end of a signaller, with its last count.
    Closed(Count),
    /// The end was lost in a panic.
    Lost,
}

/// A number of items, without its higher bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count(u32);

impl Count {
    /// The largest count.
    pub(crate) const MOST: u32 = (1 << BITS) - 1;

    pub(crate) fn of(items: u64) -> Self {
        Count(items as u32 & Count::MOST)
    }

    /// Returns the number of items that this count is ahead of `items`, wrapping.
    pub(crate) fn ahead_of(self, items: u64) -> u32 {
        Count::of(u64::from(self.0).wrapping_sub(items)).0
    }

    /// Returns the number that this is the count of, which is at least `items`. An old count is that
    /// of `items`.
    pub(crate) fn from(self, items: u64) -> u64 {
        match self.ahead_of(items) {
            ahead if ahead > Count::MOST / 2 => items,
            ahead => items + u64::from(ahead),
        }
    }
}

impl Signal {
    pub(crate) fn to_value(self) -> u32 {
        match self {
            Signal::Count(Count(items)) => items,
            Signal::Closed(Count(items)) => 1 << BITS | items,
            Signal::Lost => 2 << BITS,
        }
    }

    /// Decodes a signal. `None` for a value that no end sends.
    pub(crate) fn from_value(value: u32) -> Option<Self> {
        let count = Count(value & Count::MOST);
        match value >> BITS {
            0 => Some(Signal::Count(count)),
            1 => Some(Signal::Closed(count)),
            2 if count.0 == 0 => Some(Signal::Lost),
            _ => None,
        }
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_signal_comes_back(value: u32, items: u64) {
            if let Some(signal) = Signal::from_value(value) {
                prop_assert_eq!(signal.to_value(), value);
            }
            for signal in [Signal::Count(Count::of(items)), Signal::Closed(Count::of(items))] {
                prop_assert_eq!(Signal::from_value(signal.to_value()), Some(signal));
            }
        }

        #[test]
        fn a_count_is_ahead_by_the_items_between(items in 0..u64::MAX / 2, more in 0..MOST_ITEMS) {
            prop_assert_eq!(Count::of(items + u64::from(more)).ahead_of(items), more);
        }
    }
}
