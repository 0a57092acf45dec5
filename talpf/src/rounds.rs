//! What is kept of every round of a lane that is not over.

use crate::numbers::Round;

/// Rounds that one rank may be ahead of another of its process, or of those of its own syncs that
/// have not ended.
pub(crate) const MOST_AHEAD: u64 = 1 << 16;
/// Rounds that a rank of another process may be ahead, whose word is all that is known.
pub(crate) const MOST_AHEAD_REMOTE: u64 = 1 << 10;

/// A place for each round from the first that is not over. Later rounds use the places again, so
/// a lane that goes on and on moves and allocates nothing.
#[derive(Debug)]
pub(crate) struct Rounds<T> {
    first: u64,
    /// A power of two of them, or none yet: round n has place n modulo their number. Those of
    /// rounds that nobody has asked for are empty.
    places: Vec<T>,
}

impl<T> Default for Rounds<T> {
    fn default() -> Self {
        Rounds { first: 0, places: Vec::new() }
    }
}

impl<T> Rounds<T> {
    /// The first round that is not over.
    #[inline]
    pub(crate) fn first(&self) -> Round {
        Round(self.first)
    }

    /// The place of a round. `None` if that is over, or `most_ahead` rounds or more after the first
    /// that is not. `empty` makes places.
    #[inline]
    pub(crate) fn place(
        &mut self,
        round: Round,
        most_ahead: u64,
        empty: impl Fn() -> T,
    ) -> Option<&mut T> {
        let ahead = round.0.checked_sub(self.first)?;
        if ahead >= self.places.len() as u64 {
            if ahead >= most_ahead {
                return None;
            }
            self.make_room(ahead, empty);
        }
        let at = self.index(round.0);
        self.places.get_mut(at)
    }

    /// The first round is over. The caller empties its place, if it has one.
    #[inline]
    pub(crate) fn pass(&mut self) -> Option<&mut T> {
        let at = self.index(self.first);
        self.first += 1;
        self.places.get_mut(at)
    }

    /// All places, those of rounds that nobody has asked for too.
    pub(crate) fn places(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut()
    }

    #[inline]
    fn index(&self, round: u64) -> usize {
        round as usize & self.places.len().wrapping_sub(1)
    }

    #[cold]
    fn make_room(&mut self, ahead: u64, empty: impl Fn() -> T) {
        let before = self.places.len();
        let len = (ahead as usize + 1).next_power_of_two();
        self.places.resize_with(len, empty);
        // Twice the number of places, or a multiple of that: a round stays, or goes where none was.
        for round in (self.first..).take(before) {
            self.places.swap(round as usize & before.wrapping_sub(1), round as usize & (len - 1));
        }
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_round_too_far_ahead_has_no_place_and_takes_no_memory() {
        let mut rounds = Rounds::default();
        rounds.pass();
        assert!(rounds.place(Round(1 + 1024), 1024, || ()).is_none());
        assert!(rounds.place(Round(u64::MAX), 1024, || ()).is_none());
        assert_eq!(rounds.places().count(), 0);
        assert!(rounds.place(Round(1024), 1024, || ()).is_some());
        assert_eq!(rounds.places().count(), 1024);
    }

    proptest! {
        /// Against a map of all rounds.
        #[test]
        fn a_round_keeps_its_place_until_it_is_over(
            steps in prop::collection::vec(prop::option::weighted(0.7, 0u64..20), 1..60),
        ) {
            let (mut rounds, mut known) = (Rounds::default(), BTreeMap::new());
            for (value, step) in steps.into_iter().enumerate() {
                let first = rounds.first().0;
                match step {
                    Some(ahead) => {
                        let place = rounds.place(Round(first + ahead), 20, || None).unwrap();
                        prop_assert_eq!(*place, known.insert(first + ahead, value));
                        *place = Some(value);
                    }
                    None => {
                        let over = rounds.pass().and_then(Option::take);
                        prop_assert_eq!(over, known.remove(&first));
                        prop_assert!(rounds.place(Round(first), 20, || None).is_none());
                    }
                }
            }
        }
    }
}
