//! Operations that were admitted to a window and may not have landed, but for one that is being posted
//! in an idle window (`idle_windows.rs`).
//!
//! A window takes operations of one kind. Reads do not exclude each other, so only their sources
//! are kept. Changes wait for those that they overlap, so the kept ones are disjoint, in the order
//! of the elements; a change is joined with those of its source that it follows or overlaps. A
//! rectangle counts as all elements from its first to its last one, so two that lie side by side
//! land one after the other. Parked operations that leave their window to be posted are not
//! kept one by one: nothing else lands on their elements, or, if they are many, from the first to
//! the last of these.
//!
//! **Cost**: the logarithm of the number of changes. Changes that have landed are removed when an
//! overlapping one comes, and all of them whenever their number has doubled.

use std::collections::BTreeMap;

use super::area::{Claim, Kind};
use super::landing::{HasLanded, Post};
use crate::numbers::Rank;

/// The operations of one window that may not have landed. Usually none: then it is one word.
#[derive(Default)]
pub(super) struct InFlight(Option<Box<Flights>>);

#[derive(Default)]
struct Flights {
    /// Changes by first element.
    changes: BTreeMap<u64, Change>,
    /// Number of changes at which those that have landed are removed.
    full: usize,
    /// Ranks that read, each once.
    readers: Vec<Rank>,
    /// Number of reads that are being posted.
    posting: u32,
    /// Number of lists of parked operations that were admitted and are being posted.
    admitted: u32,
    /// First element, and the one after the last, of the changes among these.
    ranges: Vec<(u64, u64)>,
}

/// Largest number of ranges that are kept apart.
const MOST_RANGES: usize = 16;

/// A change of the elements from its key to `end`.
struct Change {
    end: u64,
    source: Rank,
    /// `true` while the change is being posted, outside the lock, or its source has a ticket for it.
    posting: bool,
}

const FULL_AT_LEAST: usize = 32;

impl InFlight {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|flights| flights.is_empty())
    }

    /// Returns `true` if an operation may land beside all others.
    #[inline]
    pub(super) fn admits(&mut self, claim: &Claim, has_landed: HasLanded<'_>) -> bool {
        self.0.as_mut().is_none_or(|flights| flights.is_empty() || flights.admit(claim, has_landed))
    }

    /// Adds an operation that was admitted and posted.
    #[cold]
    pub(super) fn add(&mut self, claim: &Claim, has_landed: HasLanded<'_>) {
        self.0.get_or_insert_default().add(claim, has_landed);
    }

    /// Adds an operation that was admitted, as far as it was posted and has not landed.
    #[inline]
    pub(super) fn note_posted(&mut self, claim: &Claim, post: Post, has_landed: HasLanded<'_>) {
        if post != Post::Nothing && !has_landed(claim.source) {
            self.add(claim, has_landed);
        }
    }

    /// Adds an operation that was admitted and will be posted outside the lock.
    pub(super) fn begin_to_post(&mut self, claim: &Claim) {
        self.0.get_or_insert_default().begin_to_post(claim);
    }

    /// Removes an operation that was being posted.
    pub(super) fn end_to_post(&mut self, claim: &Claim) {
        if let Some(flights) = &mut self.0 {
            flights.end_to_post(claim);
        }
    }

    /// Adds parked operations that were admitted together. They may overlap each other.
    pub(super) fn begin_admitted<'c>(&mut self, claims: impl Iterator<Item = &'c Claim>) {
        self.0.get_or_insert_default().begin_admitted(claims);
    }

    /// Removes parked operations that were admitted together and posted.
    pub(super) fn end_admitted(&mut self) {
        if let Some(flights) = &mut self.0 {
            flights.end_admitted();
        }
    }

    /// Removes operations that have landed. Returns `true` if none is left.
    #[inline]
    pub(super) fn forget_landed(&mut self, has_landed: HasLanded<'_>) -> bool {
        self.0.as_mut().is_none_or(|flights| flights.forget_landed(has_landed))
    }
}

impl Flights {
    #[inline]
    fn is_empty(&self) -> bool {
        let is_posting = self.posting > 0 || self.admitted > 0;
        self.changes.is_empty() && self.readers.is_empty() && !is_posting
    }

    fn admit(&mut self, claim: &Claim, has_landed: HasLanded<'_>) -> bool {
        if self.ranges.iter().any(|&(first, end)| first < claim.end && claim.index < end) {
            return false;
        }
        while let Some((first, change)) = self.last_before(claim.end) {
            if change.end <= claim.index {
                return true;
            }
            if change.posting || !has_landed(change.source) {
                return false;
            }
            self.changes.remove(&first);
        }
        true
    }

    /// Returns the last of the changes that begin before element `end`.
    fn last_before(&self, end: u64) -> Option<(u64, &Change)> {
        self.changes.range(..end).next_back().map(|(first, change)| (*first, change))
    }

    fn add(&mut self, claim: &Claim, has_landed: HasLanded<'_>) {
        if claim.kind == Kind::Read {
            if !self.readers.contains(&claim.source) {
                self.readers.push(claim.source);
            }
        } else if claim.index < claim.end {
            if self.changes.len() >= self.full {
                self.forget_landed(has_landed);
                self.full = FULL_AT_LEAST.max(2 * self.changes.len());
            }
            self.add_change(claim);
        }
    }

    fn add_change(&mut self, claim: &Claim) {
        let (source, mut first, mut end) = (claim.source, claim.index, claim.end);
        while let Some((before, change)) = self.last_before(end)
            && change.end >= first
            && change.source == source
            && !change.posting
        {
            (first, end) = (first.min(before), end.max(change.end));
            self.changes.remove(&before);
        }
        self.changes.insert(first, Change { end, source, posting: false });
    }

    fn begin_to_post(&mut self, claim: &Claim) {
        if claim.kind == Kind::Read {
            self.posting += 1;
        } else if claim.index < claim.end {
            let change = Change { end: claim.end, source: claim.source, posting: true };
            self.changes.insert(claim.index, change);
        }
    }

    fn begin_admitted<'c>(&mut self, claims: impl Iterator<Item = &'c Claim>) {
        self.admitted += 1;
        let changes = claims.filter(|claim| claim.kind.changes() && claim.index < claim.end);
        self.ranges.extend(changes.map(|claim| (claim.index, claim.end)));
        if self.ranges.len() > MOST_RANGES {
            let first = self.ranges.iter().map(|(first, _)| *first).min();
            let end = self.ranges.iter().map(|(_, end)| *end).max();
            self.ranges.clear();
            self.ranges.extend(first.zip(end));
        }
    }

    fn end_admitted(&mut self) {
        self.admitted -= 1;
        if self.admitted == 0 {
            self.ranges.clear();
        }
    }

    fn end_to_post(&mut self, claim: &Claim) {
        if claim.kind == Kind::Read {
            self.posting -= 1;
        } else if claim.index < claim.end {
            self.changes.remove(&claim.index);
        }
    }

    fn forget_landed(&mut self, has_landed: HasLanded<'_>) -> bool {
        self.changes.retain(|_, change| change.posting || !has_landed(change.source));
        self.readers.retain(|reader| !has_landed(*reader));
        self.is_empty()
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    /// Operations of three ranks: source, index and length; `true` if all earlier ones of the
    /// source have landed; `true` if it is posted outside the lock.
    fn steps() -> impl Strategy<Value = Vec<(u32, u64, u64, bool, bool)>> {
        let step = (0..3u32, 0..40u64, 0..6u64, prop::bool::weighted(0.2), any::<bool>());
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        /// Compares with a list of all operations. One that landed before its source posted more
        /// may still be waited for, but not when every operation of its source has landed.
        #[test]
        fn a_change_is_admitted_when_all_it_overlaps_have_landed(steps in steps()) {
            let landed = Cell::new([false; 3]);
            let has_landed = |source: Rank| landed.get()[source.index()];
            let mut flight = InFlight::default();
            let mut list: Vec<(Claim, bool)> = Vec::new();
            for (source, index, len, lands, posts_outside) in steps {
                let mut now = [false; 3];
                now[source as usize] = lands;
                landed.set(now);
                list.retain(|(other, posting)| *posting || !has_landed(other.source));
                let (slot, kind) = (0, Kind::Write);
                let source = Rank(source);
                let claim = Claim { source, slot, index, end: index + len, rows: 1, stride: 0, kind, raw: false };
                let mut overlapped = list.iter().filter(|(other, _)| other.conflicts(&claim));
                let is_free = overlapped.clone().next().is_none();
                let is_posting = overlapped.any(|(_, posting)| *posting);
                let mut free = flight.admits(&claim, &has_landed);
                prop_assert!(is_free || !free, "{:?} lands on another one", claim);
                if !free {
                    landed.set([true; 3]);
                    list.retain(|(_, posting)| *posting);
                    free = flight.admits(&claim, &has_landed);
                    prop_assert_eq!(free, !is_posting, "{:?}", claim);
                }
                if free && len > 0 {
                    if posts_outside {
                        flight.begin_to_post(&claim);
                    } else {
                        flight.add(&claim, &has_landed);
                    }
                    list.push((claim, posts_outside));
                }
                if let Some(at) = list.iter().position(|(_, posting)| *posting && index % 3 == 0) {
                    let (claim, _) = list.remove(at);
                    flight.end_to_post(&claim);
                }
                prop_assert!(!flight.is_empty() || list.is_empty());
            }
            landed.set([true; 3]);
            list.retain(|(_, posting)| *posting);
            prop_assert_eq!(flight.forget_landed(&has_landed), list.is_empty());
        }
    }

    #[test]
    fn nothing_lands_on_admitted_operations_until_all_are_posted() {
        let write = |index, end| Claim {
            source: Rank(0),
            slot: 0,
            index,
            end,
            rows: 1,
            stride: 0,
            kind: Kind::Write,
            raw: false,
        };
        let landed: HasLanded<'_> = &|_| true;
        for many in [false, true] {
            let mut flight = InFlight::default();
            let claims: Vec<Claim> = if many {
                (0..=MOST_RANGES as u64).map(|at| write(4 * at, 4 * at + 2)).collect()
            } else {
                vec![write(0, 2), write(1, 6), write(20, 20)]
            };
            flight.begin_admitted(claims.iter());
            flight.begin_admitted([write(100, 101)].iter());
            assert!(claims[..2].iter().all(|claim| !flight.admits(claim, landed)));
            assert_eq!(flight.admits(&write(7, 8), landed), !many, "one range for many");
            assert!(flight.admits(&write(98, 100), landed));
            flight.end_admitted();
            assert!(!flight.forget_landed(landed) && !flight.admits(&claims[0], landed));
            flight.end_admitted();
            assert!(flight.is_empty() && flight.admits(&claims[0], landed));
        }
    }

    #[test]
    fn reads_do_not_exclude_each_other_and_are_known_by_their_ranks() {
        let read = |source| Claim {
            source: Rank(source),
            slot: 0,
            index: 0,
            end: 8,
            rows: 1,
            stride: 0,
            kind: Kind::Read,
            raw: false,
        };
        let flying: HasLanded<'_> = &|_| false;
        let mut flight = InFlight::default();
        for source in [0, 1, 0] {
            assert!(flight.admits(&read(source), flying));
            flight.add(&read(source), flying);
        }
        flight.begin_to_post(&read(2));
        assert!(!flight.forget_landed(&|_| true), "one is being posted");
        flight.end_to_post(&read(2));
        assert!(flight.is_empty());
        flight.add(&read(1), flying);
        assert!(!flight.forget_landed(&|source| source == Rank(0)));
        assert!(flight.forget_landed(&|source| source == Rank(1)));
    }
}
