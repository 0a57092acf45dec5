//! The numbers of items of one sender, at both ends: how much room it has in its ring, and what was
//! taken out.
//!
//! Both ends signal the number of all items since the queue was made, not of those since the signal
//! before: one that is late or missing changes nothing.

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
    /// Set once nothing comes any more.
    has_ended: bool,
}

/// Elements of the ring in a row that a sender may write, of which there are no two.
#[derive(Debug)]
pub(super) struct Room {
    at: usize,
    items: usize,
}

impl Room {
    /// Returns the first element.
    #[inline]
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Returns the number of elements.
    #[inline]
    pub(super) fn items(&self) -> usize {
        self.items
    }
}

/// The error of a count that the other end cannot have sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutOfRange {
    /// Number of items.
    pub(super) items: u64,
    /// Largest number of items that it can be.
    pub(super) limit: u32,
}

impl SendCounts {
    pub(super) fn new(capacity: u32) -> Self {
        SendCounts { capacity, put: 0, taken: 0 }
    }

    /// Returns the number of all items that were put.
    #[inline]
    pub(super) fn put(&self) -> u64 {
        self.put
    }

    /// Returns the number of items that the receiver has taken, as far as is known here.
    #[inline]
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns the number of items in the ring, as far as is known here.
    fn in_ring(&self) -> u32 {
        (self.put - self.taken) as u32
    }

    /// Takes the room for at most `items` items, which are counted as put.
    #[inline]
    pub(super) fn take_room(&mut self, items: usize) -> Option<Room> {
        let at = (self.put % u64::from(self.capacity)) as u32;
        let room = (self.capacity - self.in_ring()).min(self.capacity - at);
        let items = items.min(room as usize);
        self.put += items as u64;
        (items > 0).then_some(Room { at: at as usize, items })
    }

    /// Takes in a credit, as the number of all items that were ever taken. An old one has no effect.
    ///
    /// **Errors**: a number of more items than were put.
    pub(super) fn credit(&mut self, taken: u64) -> Result<(), OutOfRange> {
        let (items, limit) = (taken.saturating_sub(self.taken), self.in_ring());
        if items > u64::from(limit) {
            return Err(OutOfRange { items, limit });
        }
        self.taken += items;
        Ok(())
    }
}

impl ReceiveCounts {
    pub(super) fn new(capacity: u32) -> Self {
        ReceiveCounts { capacity, come: 0, taken: 0, at: 0, credited: 0, has_ended: false }
    }

    /// Returns the number of items that have come, as far as was taken in.
    #[inline]
    pub(super) fn come(&self) -> u64 {
        self.come
    }

    /// Takes in the number of all items that have come. Returns the number of new ones.
    ///
    /// **Errors**: more than the sender has credit for.
    #[inline]
    pub(super) fn take_in(&mut self, come: u64) -> Result<u64, OutOfRange> {
        let items = come.saturating_sub(self.come);
        let limit = self.capacity - (self.come - self.credited) as u32;
        if items > u64::from(limit) {
            return Err(OutOfRange { items, limit });
        }
        self.come += items;
        Ok(items)
    }

    /// Notes that nothing comes any more. Returns `false` if that was known.
    pub(super) fn end(&mut self) -> bool {
        !std::mem::replace(&mut self.has_ended, true)
    }

    /// Returns `true` if nothing comes any more.
    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
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
    pub(super) fn due_credit(&mut self) -> Option<u64> {
        let uncredited = (self.taken - self.credited) as u32;
        if uncredited < self.capacity.div_ceil(2) {
            return None;
        }
        self.credited = self.taken;
        Some(self.taken)
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
                        if let Some(Room { at, items }) = there.take_room(items) {
                            for at in &mut ring[at..at + items] {
                                prop_assert_eq!(at.replace(next), None);
                                next += 1;
                            }
                            prop_assert_eq!(here.take_in(there.put()), Ok(items as u64));
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
            prop_assert!(there.take_room(1).is_some());
        }
    }

    #[test]
    fn counts_that_no_end_can_have_sent_are_refused() {
        let mut here = ReceiveCounts::new(4);
        assert_eq!(here.take_in(5), Err(OutOfRange { items: 5, limit: 4 }));
        assert_eq!(here.take_in(3), Ok(3));
        assert_eq!(here.take_in(5), Err(OutOfRange { items: 2, limit: 1 }));
        let mut there = SendCounts::new(4);
        assert_eq!(there.take_room(3).map(|room| (room.at, room.items)), Some((0, 3)));
        assert_eq!(there.credit(4), Err(OutOfRange { items: 4, limit: 3 }));
        assert_eq!(there.credit(3), Ok(()));
        assert_eq!(there.credit(1), Ok(()));
        assert_eq!(there.take_room(9).map(|room| (room.at, room.items)), Some((3, 1)));
    }
}
