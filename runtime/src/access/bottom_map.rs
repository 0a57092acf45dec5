//! The last accesses of one tile.
//!
//! A new access conflicts with every open access that overlaps it if either of them writes. What a
//! write covers completely it also supersedes: later accesses need to know the write only. Closed
//! entries are forgotten when they are met, and all of them whenever a list has doubled, so a tile
//! that is only ever read does not grow. Reads never look at other reads.

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
}

/// The accesses of one tile that later ones may have to wait for.
#[derive(Default)]
pub(crate) struct BottomMap {
    writes: Entries,
    reads: Entries,
}

struct Entries {
    list: Vec<Entry>,
    sweep_at: usize,
}

const SWEEP_AT_LEAST: usize = 8;

impl BottomMap {
    /// Adds `new` and calls `link` for every access that it conflicts with; `link` answers whether
    /// that access is still open.
    #[inline]
    pub(crate) fn register(
        &mut self,
        new: Entry,
        writes: bool,
        mut link: impl FnMut(&Entry) -> bool,
    ) {
        if writes {
            let mut stays = |entry: &Entry| link(entry) && !new.rect.covers(&entry.rect);
            self.writes.visit(&new.rect, &mut stays);
            self.reads.visit(&new.rect, &mut stays);
            self.writes.add(new);
        } else {
            self.writes.visit(&new.rect, &mut link);
            self.reads.add(new);
        }
    }

    /// Remembers an access that touches no element, so that its array is kept.
    pub(crate) fn register_empty(&mut self, new: Entry) {
        self.reads.add(Entry { rect: Rect::new(0, 0, 0, 0), ..new });
    }

    /// Calls `link` for every access that touches no element.
    pub(crate) fn for_each_empty(&self, link: impl FnMut(&Entry)) {
        self.reads.list.iter().filter(|entry| entry.rect.is_empty()).for_each(link);
    }

    /// Whether any remembered access is open.
    pub(crate) fn any_open(&self) -> bool {
        self.writes.list.iter().chain(&self.reads.list).any(Entry::is_open)
    }
}

impl Default for Entries {
    fn default() -> Self {
        Entries { list: Vec::new(), sweep_at: SWEEP_AT_LEAST }
    }
}

impl Entries {
    /// Forgets the entries that overlap `rect` and that `stays` says no to. Their order is of no
    /// matter.
    #[inline]
    fn visit(&mut self, rect: &Rect, stays: &mut impl FnMut(&Entry) -> bool) {
        let mut at = 0;
        while let Some(entry) = self.list.get(at) {
            if !entry.rect.overlaps(rect) || stays(entry) {
                at += 1;
            } else {
                self.list.swap_remove(at);
            }
        }
    }

    #[inline]
    fn add(&mut self, new: Entry) {
        if self.list.len() >= self.sweep_at {
            self.sweep();
        }
        self.list.push(new);
    }

    /// Forgets closed entries.
    #[cold]
    fn sweep(&mut self) {
        self.list.retain(Entry::is_open);
        self.sweep_at = SWEEP_AT_LEAST.max(2 * self.list.len());
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
    fn entry(number: u32, cols: std::ops::Range<u32>) -> Entry {
        let head: &'static AccessHead = Box::leak(Box::new(AccessHead::new()));
        head.open(number);
        Entry { head, generation: number, rect: Rect::new(0, 1, cols.start, cols.end) }
    }

    fn linked(map: &mut BottomMap, new: Entry, writes: bool) -> Vec<u32> {
        let mut found = Vec::new();
        map.register(new, writes, |entry| {
            found.push(entry.generation);
            true
        });
        found.sort_unstable();
        found
    }

    #[test]
    fn readers_wait_for_overlapping_writers_only() {
        let mut map = BottomMap::default();
        assert!(linked(&mut map, entry(1, 0..4), true).is_empty());
        assert!(linked(&mut map, entry(2, 4..8), true).is_empty());
        assert_eq!(linked(&mut map, entry(3, 2..4), false), [1]);
        assert_eq!(linked(&mut map, entry(4, 3..5), false), [1, 2]);
    }

    #[test]
    fn a_covering_write_supersedes_what_it_covers() {
        let mut map = BottomMap::default();
        linked(&mut map, entry(1, 0..4), true);
        linked(&mut map, entry(2, 0..8), false);
        assert_eq!(linked(&mut map, entry(3, 0..4), true), [1, 2]);
        assert_eq!(linked(&mut map, entry(4, 0..4), false), [3], "1 is superseded");
        assert_eq!(linked(&mut map, entry(5, 4..8), true), [2], "2 still reads 4..8");
    }

    #[test]
    fn only_reads_do_not_grow_a_tile() {
        let mut map = BottomMap::default();
        for number in 0..10_000 {
            let read = entry(number, 0..8);
            read.head.close(number);
            map.register(read, false, |_| true);
        }
        assert!(map.reads.list.len() < 32, "{} entries", map.reads.list.len());
    }
}
