//! A ring of entries, one for each round of a lane that has not ended.

use crate::numbers::Round;

/// Largest number of rounds that one rank may be ahead of another of its process, or of the first
/// of its own syncs that has not ended.
pub(crate) const MOST_AHEAD: u64 = 1 << 16;
/// Largest number of rounds that a rank of another process may be ahead: its number is not trusted.
pub(crate) const MOST_AHEAD_REMOTE: u64 = 1 << 10;

/// An entry for each round from the first that has not ended. Later rounds use the entries again,
/// so a lane with any number of rounds moves and allocates nothing.
#[derive(Debug)]
pub(crate) struct Rounds<T> {
    first: u64,
    /// A power of two of entries, or none yet: round n has entry n modulo their number. Entries of
    /// rounds that were not accessed are empty.
    entries: Vec<T>,
}

impl<T> Default for Rounds<T> {
    fn default() -> Self {
        Rounds { first: 0, entries: Vec::new() }
    }
}

impl<T> Rounds<T> {
    /// Returns the first round that has not ended.
    #[inline]
    pub(crate) fn first(&self) -> Round {
        Round(self.first)
    }

    /// Returns the entry of a round. `None` if the round has ended, or is `most_ahead` rounds or
    /// more after the first that has not. `empty` makes entries.
    #[inline]
    pub(crate) fn entry(
        &mut self,
        round: Round,
        most_ahead: u64,
        empty: impl Fn() -> T,
    ) -> Option<&mut T> {
        let ahead = round.0.checked_sub(self.first)?;
        if ahead >= self.entries.len() as u64 {
            if ahead >= most_ahead {
                return None;
            }
            self.make_room(ahead, empty);
        }
        let at = self.index(round.0);
        self.entries.get_mut(at)
    }

    /// Ends the first round. The caller empties its entry, if it has one.
    #[inline]
    pub(crate) fn pass(&mut self) -> Option<&mut T> {
        let at = self.index(self.first);
        self.first += 1;
        self.entries.get_mut(at)
    }

    /// Iterates over all entries, also those of rounds that were not accessed.
    pub(crate) fn entries(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut()
    }

    /// Iterates over all entries with their rounds, in no order.
    pub(crate) fn entries_by_round(&mut self) -> impl Iterator<Item = (Round, &mut T)> {
        let (first, mask) = (self.first, (self.entries.len() as u64).wrapping_sub(1));
        let round = move |at: u64| Round(first + (at.wrapping_sub(first) & mask));
        (0..).zip(&mut self.entries).map(move |(at, entry)| (round(at), entry))
    }

    #[inline]
    fn index(&self, round: u64) -> usize {
        round as usize & self.entries.len().wrapping_sub(1)
    }

    #[cold]
    fn make_room(&mut self, ahead: u64, empty: impl Fn() -> T) {
        let before = self.entries.len();
        let len = (ahead as usize + 1).next_power_of_two();
        self.entries.resize_with(len, empty);
        // Twice the number of entries, or a multiple of that: an entry stays, or moves to a new
        // one.
        for round in (self.first..).take(before) {
            self.entries.swap(round as usize & before.wrapping_sub(1), round as usize & (len - 1));
        }
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_round_too_far_ahead_has_no_entry_and_takes_no_memory() {
        let mut rounds = Rounds::default();
        rounds.pass();
        assert!(rounds.entry(Round(1 + 1024), 1024, || ()).is_none());
        assert!(rounds.entry(Round(u64::MAX), 1024, || ()).is_none());
        assert_eq!(rounds.entries().count(), 0);
        assert!(rounds.entry(Round(1024), 1024, || ()).is_some());
        assert_eq!(rounds.entries().count(), 1024);
    }

    proptest! {
        /// Compares with a map of all rounds.
        #[test]
        fn a_round_keeps_its_entry_until_it_is_over(
            steps in prop::collection::vec(prop::option::weighted(0.7, 0u64..20), 1..60),
        ) {
            let (mut rounds, mut known) = (Rounds::default(), BTreeMap::new());
            for (value, step) in steps.into_iter().enumerate() {
                let first = rounds.first().0;
                match step {
                    Some(ahead) => {
                        let entry = rounds.entry(Round(first + ahead), 20, || None).unwrap();
                        prop_assert_eq!(*entry, known.insert(first + ahead, value));
                        *entry = Some(value);
                        let filled = rounds.entries_by_round().filter_map(|(r, e)| Some((r.0, (*e)?)));
                        prop_assert_eq!(filled.collect::<BTreeMap<_, _>>(), known.clone());
                    }
                    None => {
                        let over = rounds.pass().and_then(Option::take);
                        prop_assert_eq!(over, known.remove(&first));
                        prop_assert!(rounds.entry(Round(first), 20, || None).is_none());
                    }
                }
            }
        }
    }
}
