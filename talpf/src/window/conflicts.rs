//! Detection of conflicts: operations of a round that read and write one location (R6).
//!
//! Puts to one location have some order, gets change nothing, and atomics are atomic towards each
//! other; but a get or an atomic sees what a put writes, or a part of it, or nothing of it. For
//! each round there is a note of every operation, made before it can reach memory: so when all
//! operations that a sync expects have arrived, all are noted, in whatever order they arrived.
//!
//! Operations on windows and on raw slots are noted, if the run checks for conflicts. Not checked
//! are puts of double-buffered channels, which share their buffer with no other operation; an array
//! that is registered twice, which is two slots; and the tasks of the rank, which guards keep apart
//! from what lands in windows, and for which the program answers in raw slots.

use super::Claim;

/// The operations of one round at one rank.
///
/// **Cost**: amortised a sort. Memory for four times as many pieces as remain when those of one
/// source and kind that touch each other are joined, or for a few.
#[derive(Default)]
pub(super) struct Notes(Vec<Claim>);

/// Number of notes that are kept without joining any.
const FEW: usize = 64;

impl Notes {
    #[cold]
    #[inline(never)]
    pub(super) fn add(&mut self, claim: Claim) {
        if claim.index < claim.end {
            claim.each_row().for_each(|row| self.add_row(row));
        }
    }

    fn add_row(&mut self, claim: Claim) {
        let full = self.0.capacity().max(FEW);
        if self.0.len() == full {
            self.join();
            // Otherwise every further note would sort again.
            if self.0.len() > full / 2 {
                self.0.reserve(full);
            }
        }
        self.0.push(claim);
    }

    /// Returns the first two claims by slot and element that are in conflict, in the order of their
    /// kinds, whatever the order of arrival.
    pub(super) fn conflict(&mut self) -> Option<[Claim; 2]> {
        let first = self.0.first()?;
        if self.0.iter().all(|claim| claim.kind == first.kind) {
            return None;
        }
        self.join();
        self.0.sort_unstable_by_key(|claim| (claim.slot, claim.index, claim.kind, claim.source));
        // The claim of each kind that reaches furthest.
        let mut furthest: [Option<&Claim>; 3] = [None; 3];
        for claim in &self.0 {
            let mut others = furthest.iter().flatten();
            if let Some(other) = others.find(|other| other.is_at_odds(claim)) {
                let mut claims = [**other, *claim];
                claims.sort_unstable_by_key(|claim| claim.kind);
                return Some(claims);
            }
            let own = &mut furthest[claim.kind as usize];
            if own.is_none_or(|own| own.slot != claim.slot || own.end < claim.end) {
                *own = Some(claim);
            }
        }
        None
    }

    /// Removes all notes, at the end of the round.
    pub(super) fn clear(&mut self) {
        self.0 = Vec::new();
    }

    /// Joins claims of one source, kind and slot that overlap or follow each other.
    fn join(&mut self) {
        let alike = |claim: &Claim| (claim.source, claim.kind, claim.slot);
        self.0.sort_unstable_by_key(|claim| (alike(claim), claim.index));
        self.0.dedup_by(|next, joined| {
            let joins = alike(next) == alike(joined) && next.index <= joined.end;
            if joins {
                joined.end = joined.end.max(next.end);
            }
            joins
        });
    }
}

impl Claim {
    /// Returns `true` if one reads elements that the other writes.
    fn is_at_odds(&self, other: &Claim) -> bool {
        self.kind != other.kind && self.conflicts(other)
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::super::Kind;
    use super::*;
    use crate::numbers::Rank;

    fn claim(source: u32, index: u64, kind: Kind) -> Claim {
        let (source, rows, stride) = (Rank(source), 1, 0);
        Claim { source, slot: 0, index, end: index + 1, rows, stride, kind, raw: false }
    }

    #[test]
    fn memory_grows_with_the_pieces_and_not_with_the_operations() {
        let mut notes = Notes::default();
        for operation in 0..100_000 {
            notes.add(claim(1, operation % 1_000, Kind::Write));
            notes.add(claim(0, 2_000, Kind::Read));
        }
        assert!(notes.0.capacity() <= 4 * 1_000, "room for {}", notes.0.capacity());
        assert!(notes.conflict().is_none());
        // More pieces than fit at first, each apart from the next.
        (0..1_000).for_each(|piece| notes.add(claim(0, 3_000 + 2 * piece, Kind::Update)));
        notes.add(claim(1, 3_500, Kind::Write));
        let conflict = [claim(0, 3_500, Kind::Update), claim(1, 3_500, Kind::Write)];
        assert_eq!(notes.conflict(), Some(conflict));
    }
}
