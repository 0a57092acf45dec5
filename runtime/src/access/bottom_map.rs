//! The last accesses of one tile, in spawn order.
//!
//! A new access conflicts with every open access that overlaps it if either of them writes. What a
//! write covers completely it also supersedes: later accesses need to know the write only. Closed
//! entries are forgotten when they are met, and all of them whenever the list has doubled, so a
//! tile that is only ever read does not grow.

use super::AccessHead;
use crate::data::Rect;

/// An access as a tile remembers it.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) head: &'static AccessHead,
    /// Generation of the record the access lives in.
    pub(crate) generation: u32,
    /// The part of the region that lies in this tile.
    pub(crate) rect: Rect,
    pub(crate) writes: bool,
}

/// The accesses of one tile that later ones may have to wait for.
#[derive(Default)]
pub(crate) struct BottomMap {
    entries: Vec<Entry>,
    sweep_at: usize,
}

const SWEEP_AT_LEAST: usize = 8;

impl BottomMap {
    /// Adds `new` and calls `link` for every access that it conflicts with; `link` answers whether
    /// that access is still open.
    #[inline]
    pub(crate) fn register(&mut self, new: Entry, mut link: impl FnMut(&Entry) -> bool) {
        let mut kept = 0;
        for at in 0..self.entries.len() {
            let entry = self.entries[at];
            let forget = if !entry.rect.overlaps(&new.rect) {
                false
            } else if new.writes || entry.writes {
                !link(&entry) || (new.writes && new.rect.covers(&entry.rect))
            } else {
                false
            };
            if !forget {
                self.entries[kept] = entry;
                kept += 1;
            }
        }
        self.entries.truncate(kept);
        self.entries.push(new);
    }

    /// Remembers an access that touches no element, so that its array is kept.
    pub(crate) fn register_empty(&mut self, new: Entry) {
        self.entries.push(Entry { rect: Rect::new(0, 0, 0, 0), ..new });
    }

    /// Calls `link` for every access that touches no element.
    pub(crate) fn for_each_empty(&self, link: impl FnMut(&Entry)) {
        self.entries.iter().filter(|entry| entry.rect.is_empty()).for_each(link);
    }

    /// Forgets closed entries once the list has doubled since the last time.
    #[inline]
    pub(crate) fn sweep(&mut self) {
        if self.entries.len() > self.sweep_at.max(SWEEP_AT_LEAST) {
            self.entries.retain(Entry::is_open);
            self.sweep_at = 2 * self.entries.len();
        }
    }

    /// Whether any remembered access is open.
    pub(crate) fn any_open(&self) -> bool {
        self.entries.iter().any(Entry::is_open)
    }
}

impl Entry {
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.head.is_open(self.generation)
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    /// An access with its number for a generation.
    fn entry(number: u32, cols: std::ops::Range<u32>, writes: bool) -> Entry {
        let head: &'static AccessHead = Box::leak(Box::new(AccessHead::new()));
        head.open(number);
        Entry { head, generation: number, rect: Rect::new(0, 1, cols.start, cols.end), writes }
    }

    fn linked(map: &mut BottomMap, new: Entry) -> Vec<u32> {
        let mut found = Vec::new();
        map.register(new, |entry| {
            found.push(entry.generation);
            true
        });
        found
    }

    #[test]
    fn readers_wait_for_overlapping_writers_only() {
        let mut map = BottomMap::default();
        assert!(linked(&mut map, entry(1, 0..4, true)).is_empty());
        assert!(linked(&mut map, entry(2, 4..8, true)).is_empty());
        assert_eq!(linked(&mut map, entry(3, 2..4, false)), [1]);
        assert_eq!(linked(&mut map, entry(4, 3..5, false)), [1, 2]);
    }

    #[test]
    fn a_covering_write_supersedes_what_it_covers() {
        let mut map = BottomMap::default();
        linked(&mut map, entry(1, 0..4, true));
        linked(&mut map, entry(2, 0..8, false));
        assert_eq!(linked(&mut map, entry(3, 0..4, true)), [1, 2]);
        assert_eq!(linked(&mut map, entry(4, 0..4, false)), [3], "1 is superseded");
        assert_eq!(linked(&mut map, entry(5, 4..8, true)), [2], "2 still reads 4..8");
    }

    #[test]
    fn only_reads_do_not_grow_a_tile() {
        let mut map = BottomMap::default();
        for number in 0..10_000 {
            let read = entry(number, 0..8, false);
            read.head.close(number);
            map.register(read, |_| true);
            map.sweep();
        }
        assert!(map.entries.len() < 32, "{} entries", map.entries.len());
    }
}
