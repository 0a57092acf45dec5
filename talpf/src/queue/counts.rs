//! The numbers of items of one sender, at both ends: how much room it has in its ring, and what was
//! taken out.
//!
//! A credit is the number of all items that were taken since the queue was made, not of those since
//! the credit before: one that is late or missing changes nothing. Numbers do not wrap; what travels
//! is their lower bits.

use crate::signal::Count;

/// The counts of a sender, at its own rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendCounts {
    capacity: u32,
    /// Number of items that were put.
    put: u64,
    /// Number of items that the receiver has taken, as far as is known here.
    taken: u64,
}

/// The counts of a sender, at the receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveCounts {
    capacity: u32,
    /// Number of items that have come.
    come: u64,
    /// Number of items that were taken.
    taken: u64,
    /// Element of the ring that the next item to take is in.
    at: u32,
    /// Number of taken items that the sender knows of.
    credited: u64,
    /// Number of all items, once the sender is closed.
    in_all: Option<Count>,
}

/// The error of a count that the other end cannot have sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutOfRange {
    /// Number of items.
    pub(super) items: u32,
    /// Largest number of items that it can be.
    pub(super) limit: u32,
}

impl SendCounts {
    pub(super) fn new(capacity: u32) -> Self {
        SendCounts { capacity, put: 0, taken: 0 }
    }

    /// Returns the number of all items that were put.
    pub(super) fn put(&self) -> Count {
        Count::of(self.put)
    }

    /// Returns the number of items in the ring, as far as is known here.
    fn in_ring(&self) -> u32 {
        (self.put - self.taken) as u32
    }

    /// Returns the element of the ring that the next item goes to, and the number of items, at most
    /// `items`, for which there is room in a row.
    #[inline]
    pub(super) fn room(&self, items: usize) -> (usize, usize) {
        let at = (self.put % u64::from(self.capacity)) as u32;
        let room = (self.capacity - self.in_ring()).min(self.capacity - at);
        (at as usize, items.min(room as usize))
    }

    /// Adds items that were put, for which there was room.
    #[inline]
    pub(super) fn add(&mut self, items: usize) {
        self.put += items as u64;
    }

    /// Takes in a credit. An old one has no effect.
    ///
    /// **Errors**: a number of more items than were put.
    pub(super) fn credit(&mut self, taken: Count) -> Result<(), OutOfRange> {
        let (items, limit) = (taken.ahead_of(self.taken), self.in_ring());
        if items > limit {
            let is_old = items > Count::MOST / 2;
            return if is_old { Ok(()) } else { Err(OutOfRange { items, limit }) };
        }
        self.taken += u64::from(items);
        Ok(())
    }
}

impl ReceiveCounts {
    pub(super) fn new(capacity: u32) -> Self {
        ReceiveCounts { capacity, come: 0, taken: 0, at: 0, credited: 0, in_all: None }
    }

    /// Adds items that have come.
    ///
    /// **Errors**: no items, or more than the sender has credit for.
    pub(super) fn add(&mut self, items: Count) -> Result<(), OutOfRange> {
        let limit = self.capacity - (self.come - self.credited) as u32;
        match items.items() {
            items if items == 0 || items > limit => Err(OutOfRange { items, limit }),
            items => {
                self.come += u64::from(items);
                Ok(())
            }
        }
    }

    /// Notes that the sender is closed, having put so many items in all.
    pub(super) fn close(&mut self, in_all: Count) {
        self.in_all = Some(in_all);
    }

    /// Returns `true` if the sender is closed and all its items were taken.
    pub(super) fn has_ended(&self) -> bool {
        self.come == self.taken && self.in_all == Some(Count::of(self.come))
    }

    /// Takes the next item that has come. Returns its element of the ring.
    #[inline]
    pub(super) fn take(&mut self) -> Option<usize> {
        if self.taken == self.come {
            return None;
        }
        let at = self.at;
        self.at = if at + 1 == self.capacity { 0 } else { at + 1 };
        self.taken += 1;
        Some(at as usize)
    }

    /// Returns the credit for the sender, once half of its ring was taken since the last one.
    #[inline]
    pub(super) fn due_credit(&mut self) -> Option<Count> {
        let uncredited = (self.taken - self.credited) as u32;
        if uncredited < self.capacity.div_ceil(2) || self.in_all.is_some() {
            return None;
        }
        self.credited = self.taken;
        Some(Count::of(self.taken))
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Puts, takings and credits in any order, where credits are late and only some come.
        #[test]
        fn no_item_is_overwritten_and_no_sender_waits_in_vain(
            capacity in 1..9u32,
            steps in prop::collection::vec((0..3u8, 0..10usize, any::<bool>()), 1..200),
        ) {
            let (mut there, mut here) = (SendCounts::new(capacity), ReceiveCounts::new(capacity));
            let mut ring = vec![None; capacity as usize];
            let (mut next, mut expected, mut credits) = (0u64, 0u64, Vec::new());
            for (step, items, comes) in steps {
                match step {
                    0 => {
                        let (at, items) = there.room(items);
                        for at in &mut ring[at..at + items] {
                            prop_assert_eq!(at.replace(next), None);
                            next += 1;
                        }
                        there.add(items);
                        if items > 0 {
                            here.add(Count::of(items as u64)).unwrap();
                        }
                    }
                    1 => {
                        if let Some(at) = here.take() {
                            prop_assert_eq!(ring[at].take(), Some(expected));
                            expected += 1;
                        }
                        credits.extend(here.due_credit());
                    }
                    _ if comes => {
                        let credit = credits.pop();
                        credit.into_iter().for_each(|credit| there.credit(credit).unwrap());
                    }
                    _ => {}
                }
            }
            // All that has come is taken, and then there is room.
            while let Some(at) = here.take() {
                prop_assert_eq!(ring[at].take(), Some(expected));
                expected += 1;
                credits.extend(here.due_credit());
            }
            credits.into_iter().for_each(|credit| there.credit(credit).unwrap());
            prop_assert_eq!(next, expected);
            prop_assert!(there.room(1).1 == 1);
            here.close(there.put());
            prop_assert!(here.has_ended());
        }
    }

    #[test]
    fn counts_that_no_end_can_have_sent_are_refused() {
        let mut here = ReceiveCounts::new(4);
        assert_eq!(here.add(Count::of(0)), Err(OutOfRange { items: 0, limit: 4 }));
        assert_eq!(here.add(Count::of(5)), Err(OutOfRange { items: 5, limit: 4 }));
        assert_eq!(here.add(Count::of(3)), Ok(()));
        assert_eq!(here.add(Count::of(2)), Err(OutOfRange { items: 2, limit: 1 }));
        let mut there = SendCounts::new(4);
        there.add(3);
        assert_eq!(there.credit(Count::of(4)), Err(OutOfRange { items: 4, limit: 3 }));
        assert_eq!(there.credit(Count::of(3)), Ok(()));
        assert_eq!(there.credit(Count::of(1)), Ok(()));
        assert_eq!(there.room(9), (3, 1));
    }
}
