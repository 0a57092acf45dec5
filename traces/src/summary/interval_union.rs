//! Time that intervals cover together, however they overlap.

use std::iter;

/// Parts that are kept: 1 MiB of memory.
const MOST_PARTS: usize = 1 << 16;

/// Union of intervals. Where it has more than 65,536 separate parts, the first half of them is settled: an
/// interval that comes later and begins before their end counts from there.
#[derive(Clone, Debug, Default)]
pub(super) struct IntervalUnion {
    /// Parts behind `settled_until`, in order, with gaps between them.
    parts: Vec<(u64, u64)>,
    /// Length of the parts before `settled_until`.
    settled: u64,
    settled_until: u64,
}

impl IntervalUnion {
    pub(super) fn add(&mut self, begin: u64, end: u64) {
        let begin = begin.max(self.settled_until);
        if begin >= end {
            return;
        }
        // Intervals that come by their ends touch the last parts alone.
        let from = self.parts.partition_point(|(_, part_end)| *part_end < begin);
        let to = self.parts.partition_point(|(part_begin, _)| *part_begin <= end);
        let part = match &self.parts[from..to] {
            [] => (begin, end),
            [(first, _), ..] => (begin.min(*first), end.max(self.parts[to - 1].1)),
        };
        self.parts.splice(from..to, iter::once(part));
        if self.parts.len() > MOST_PARTS {
            self.settle(MOST_PARTS / 2);
        }
    }

    pub(super) fn length(&self) -> u64 {
        self.settled + length(&self.parts)
    }

    fn settle(&mut self, count: usize) {
        self.settled += length(&self.parts[..count]);
        self.settled_until = self.parts[count - 1].1;
        self.parts.drain(..count);
    }
}

fn length(parts: &[(u64, u64)]) -> u64 {
    parts.iter().map(|(begin, end)| end - begin).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the union of `count` intervals of 1 with gaps of 1 between them.
    fn comb(count: usize) -> IntervalUnion {
        let mut union = IntervalUnion::default();
        (0..count as u64).for_each(|tooth| union.add(2 * tooth, 2 * tooth + 1));
        union
    }

    #[test]
    fn one_interval_may_cover_as_many_parts_as_are_kept() {
        let mut union = comb(MOST_PARTS);
        assert_eq!(union.length(), MOST_PARTS as u64);
        let end = 2 * MOST_PARTS as u64;
        union.add(0, end);
        assert_eq!(union.length(), end);
    }

    #[test]
    fn beyond_it_the_first_half_of_the_gaps_stays() {
        let mut union = comb(MOST_PARTS + 1);
        assert_eq!(union.length(), MOST_PARTS as u64 + 1);
        let end = 2 * MOST_PARTS as u64 + 1;
        union.add(0, end);
        let gaps = MOST_PARTS as u64 / 2 - 1;
        assert_eq!(union.length(), end - gaps);
        assert!(union.parts.len() < MOST_PARTS);
    }
}
