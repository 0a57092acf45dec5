//! The last accesses of one tile.
//!
//! A new access conflicts with every open access that overlaps it if either of them writes. What a
//! write covers completely it also supersedes: later accesses need to know the write only. Closed
//! entries are forgotten when they are met, and all of them whenever a list has doubled, so a tile
//! that is only ever read does not grow. Reads never look at other reads. An access to the whole
//! tile conflicts with everything in it and compares no rectangles.

use std::sync::Arc;

use super::reductions::Reductions;
use super::{AccessHead, OpenReduction};
use crate::data::{Mode, Rect};
use crate::task::RecordId;

/// An access as a tile remembers it.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) head: &'static AccessHead,
    /// Generation of the record the access lives in.
    pub(crate) generation: u32,
    pub(crate) task: RecordId,
    /// The part of the region that lies in this tile.
    pub(crate) rect: Rect,
}

const ROOM_AT_LEAST: usize = 4;

/// The accesses of one tile that later ones may have to wait for.
#[derive(Default)]
pub(crate) struct BottomMap {
    writes: Entries,
    reads: Entries,
    /// Made when there is the first one.
    unordered: Option<Box<Unordered>>,
}

/// Accesses that do not conflict with others of their mode, and those that touch no element.
#[derive(Default)]
struct Unordered {
    concurrent: Entries,
    commutative: Entries,
    reductions: Reductions,
    empty: Entries,
}

#[derive(Default)]
pub(super) struct Entries {
    list: Vec<Entry>,
}

impl Unordered {
    /// Whether there is anything that touches an element.
    #[cold]
    fn meets(&self) -> bool {
        !(self.concurrent.is_empty() && self.commutative.is_empty())
            || self.reductions.entries().next().is_some()
    }
}

impl BottomMap {
    /// Adds `new` and calls `link` for every access that it conflicts with; `link` answers whether
    /// that access is still open.
    #[inline]
    pub(crate) fn register(
        &mut self,
        new: Entry,
        mode: Mode,
        mut link: impl FnMut(&Entry) -> bool,
    ) {
        if mode.is_unordered() {
            return self.register_unordered(new, mode, link);
        }
        let covers = mode.writes();
        let mut stays = |entry: &Entry| link(entry) && !(covers && new.rect.covers(&entry.rect));
        self.writes.visit(&new.rect, &mut stays);
        if let Some(unordered) = &mut self.unordered {
            unordered.concurrent.visit(&new.rect, &mut stays);
            unordered.commutative.visit(&new.rect, &mut stays);
            unordered.reductions.visit(&new.rect, &mut stays);
        }
        if mode.writes() {
            self.reads.visit(&new.rect, &mut stays);
            self.writes.add(new);
        } else {
            self.reads.add(new);
        }
    }

    /// Whether nothing but reads and writes touches an element.
    #[inline]
    pub(super) fn has_order(&self) -> bool {
        self.unordered.as_ref().is_none_or(|unordered| !unordered.meets())
    }

    /// As `register`, for a read or write of the whole tile where nothing else touches an element.
    #[inline]
    pub(crate) fn register_whole(
        &mut self,
        new: Entry,
        mode: Mode,
        mut link: impl FnMut(&Entry) -> bool,
    ) {
        if mode.writes() {
            for earlier in &self.writes.list {
                link(earlier);
            }
            for earlier in &self.reads.list {
                link(earlier);
            }
            self.writes.list.clear();
            self.reads.list.clear();
            self.writes.list.push(new);
        } else {
            self.writes.visit_all(link);
            self.reads.add(new);
        }
    }

    /// Concurrent and commutative accesses supersede nothing: the next one of their mode does not
    /// wait for them, so it has to find what they have waited for.
    #[cold]
    fn register_unordered(&mut self, new: Entry, mode: Mode, mut link: impl FnMut(&Entry) -> bool) {
        self.writes.visit(&new.rect, &mut link);
        self.reads.visit(&new.rect, &mut link);
        let unordered = self.unordered.get_or_insert_default();
        unordered.reductions.visit(&new.rect, &mut link);
        if mode == Mode::Concurrent {
            unordered.commutative.visit(&new.rect, &mut link);
            unordered.concurrent.add(new);
        } else {
            unordered.concurrent.visit(&new.rect, &mut link);
            // Its own task cannot have two turns.
            let mut own = |entry: &Entry| entry.task != new.task || link(entry);
            unordered.commutative.visit(&new.rect, &mut own);
            unordered.commutative.add(new);
        }
    }

    /// As `register`, for an access that has joined `reduction`. It supersedes nothing either.
    #[cold]
    pub(crate) fn register_reduction(
        &mut self,
        new: Entry,
        reduction: &Arc<OpenReduction>,
        mut link: impl FnMut(&Entry) -> bool,
    ) {
        self.writes.visit(&new.rect, &mut link);
        self.reads.visit(&new.rect, &mut link);
        let unordered = self.unordered.get_or_insert_default();
        unordered.concurrent.visit(&new.rect, &mut link);
        unordered.commutative.visit(&new.rect, &mut link);
        unordered.reductions.register(new, reduction, &mut link);
    }

    /// The reduction over exactly `rect` that tasks may join.
    pub(crate) fn open_reduction(&self, rect: &Rect) -> Option<&Arc<OpenReduction>> {
        self.unordered.as_ref()?.reductions.open(rect)
    }

    /// Remembers an access that touches no element, so that its array is kept.
    pub(crate) fn register_empty(&mut self, new: Entry) {
        self.unordered.get_or_insert_default().empty.add(new);
    }

    /// Calls `visit` for every open access that touches no element.
    pub(crate) fn for_each_empty(&self, visit: impl FnMut(&Entry)) {
        let empty = self.unordered.iter().flat_map(|unordered| unordered.empty.iter());
        empty.filter(|entry| entry.is_open()).for_each(visit);
    }

    /// Whether any remembered access is open.
    pub(crate) fn any_open(&self) -> bool {
        self.entries().any(Entry::is_open)
    }

    /// The accesses it remembers, some of which may have closed.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        let unordered = self.unordered.iter().flat_map(|unordered| {
            let Unordered { concurrent, commutative, reductions, empty } = &**unordered;
            let listed = concurrent.iter().chain(commutative.iter()).chain(empty.iter());
            listed.chain(reductions.entries())
        });
        self.writes.list.iter().chain(&self.reads.list).chain(unordered)
    }

    /// Calls `visit` for every open access that a new one of `mode` to `rect` would wait for.
    pub(super) fn for_each_conflict(&self, rect: &Rect, mode: Mode, mut visit: impl FnMut(&Entry)) {
        self.conflicts(rect, mode).into_iter().flatten().for_each(&mut visit);
        self.reducing(rect).for_each(visit);
    }

    /// What is left of the map for a new access of `mode` to `rect`: all that it would wait for.
    /// Nobody joins the reductions among it, so all wait for them as for writes.
    pub(super) fn inherit(&self, rect: &Rect, mode: Mode) -> BottomMap {
        let [mut writes, reads, concurrent, commutative] =
            self.conflicts(rect, mode).map(|entries| Entries { list: entries.copied().collect() });
        writes.list.extend(self.reducing(rect));
        let unordered = Unordered { concurrent, commutative, ..Unordered::default() };
        let any = !unordered.concurrent.is_empty() || !unordered.commutative.is_empty();
        BottomMap { writes, reads, unordered: any.then(|| Box::new(unordered)) }
    }

    /// The open accesses that one of `mode` to `rect` conflicts with: writes, reads, concurrent and
    /// commutative ones.
    fn conflicts<'a>(&'a self, rect: &'a Rect, mode: Mode) -> [impl Iterator<Item = &'a Entry>; 4] {
        let unordered = self.unordered.as_deref();
        let lists = [
            Some(&self.writes),
            Some(&self.reads).filter(|_| mode != Mode::In),
            unordered.map(|u| &u.concurrent).filter(|_| mode != Mode::Concurrent),
            unordered.map(|u| &u.commutative).filter(|_| mode != Mode::Commutative),
        ];
        lists.map(|list| {
            let entries = list.map_or(&[][..], |entries| &entries.list);
            entries.iter().filter(move |entry| entry.rect.overlaps(rect) && entry.is_open())
        })
    }

    /// The open accesses of reductions that overlap `rect`.
    fn reducing<'a>(&'a self, rect: &'a Rect) -> impl Iterator<Item = &'a Entry> {
        let entries = self.unordered.iter().flat_map(|unordered| unordered.reductions.entries());
        entries.filter(move |entry| entry.rect.overlaps(rect) && entry.is_open())
    }
}

impl Entries {
    /// Forgets the entries that overlap `rect` and that `stays` says no to. Their order is of no
    /// matter.
    #[inline]
    pub(super) fn visit(&mut self, rect: &Rect, stays: &mut impl FnMut(&Entry) -> bool) {
        self.visit_all(|entry| !entry.rect.overlaps(rect) || stays(entry));
    }

    #[inline]
    fn visit_all(&mut self, mut stays: impl FnMut(&Entry) -> bool) {
        let mut at = 0;
        while let Some(entry) = self.list.get(at) {
            if stays(entry) {
                at += 1;
            } else {
                self.list.swap_remove(at);
            }
        }
    }

    #[inline]
    pub(super) fn add(&mut self, new: Entry) {
        if self.list.len() == self.list.capacity() {
            self.make_room();
        }
        self.list.push(new);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn last(&self) -> Option<&Entry> {
        self.list.last()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.list.iter()
    }

    /// Forgets closed entries, and grows if most are open.
    #[cold]
    fn make_room(&mut self) {
        let full = self.list.len();
        self.list.retain(Entry::is_open);
        if self.list.len() > full / 2 || full == 0 {
            self.list.reserve_exact(ROOM_AT_LEAST.max(full));
        }
    }
}

impl Entry {
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.head.is_open(self.generation)
    }

    /// Adds the access to those that have to be looked behind, if it was passed on. Answers whether
    /// it was.
    #[cold]
    pub(super) fn note_passed_on(&self, behind: &mut Vec<&'static AccessHead>) -> bool {
        let passed_on = self.head.is_passed_on(self.generation);
        if passed_on && !behind.iter().any(|known| std::ptr::eq(*known, self.head)) {
            behind.push(self.head);
        }
        passed_on
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    /// An access with its number for a generation.
    fn entry(number: u32, cols: std::ops::Range<u32>) -> Entry {
        let head: &'static AccessHead = Box::leak(Box::new(AccessHead::new()));
        head.open(number);
        let rect = Rect::new(0, 1, cols.start, cols.end);
        Entry { head, generation: number, task: RecordId::of_test(number), rect }
    }

    fn linked(map: &mut BottomMap, new: Entry, mode: Mode) -> Vec<u32> {
        let mut found = Vec::new();
        map.register(new, mode, |entry| {
            found.push(entry.generation);
            true
        });
        found.sort_unstable();
        found
    }

    #[test]
    fn readers_wait_for_overlapping_writers_only() {
        let mut map = BottomMap::default();
        assert!(linked(&mut map, entry(1, 0..4), Mode::InOut).is_empty());
        assert!(linked(&mut map, entry(2, 4..8), Mode::InOut).is_empty());
        assert_eq!(linked(&mut map, entry(3, 2..4), Mode::In), [1]);
        assert_eq!(linked(&mut map, entry(4, 3..5), Mode::In), [1, 2]);
    }

    #[test]
    fn a_covering_write_supersedes_what_it_covers() {
        let mut map = BottomMap::default();
        linked(&mut map, entry(1, 0..4), Mode::InOut);
        linked(&mut map, entry(2, 0..8), Mode::In);
        assert_eq!(linked(&mut map, entry(3, 0..4), Mode::InOut), [1, 2]);
        assert_eq!(linked(&mut map, entry(4, 0..4), Mode::In), [3], "1 is superseded");
        assert_eq!(linked(&mut map, entry(5, 4..8), Mode::InOut), [2], "2 still reads 4..8");
    }

    #[test]
    fn an_access_to_the_whole_tile_meets_every_other() {
        let mut map = BottomMap::default();
        let whole = |map: &mut BottomMap, number, mode| {
            let mut found = Vec::new();
            map.register_whole(entry(number, 0..8), mode, |entry| {
                found.push(entry.generation);
                true
            });
            found.sort_unstable();
            found
        };
        linked(&mut map, entry(1, 0..4), Mode::InOut);
        assert_eq!(whole(&mut map, 2, Mode::In), [1]);
        assert_eq!(whole(&mut map, 3, Mode::In), [1], "reads do not meet");
        assert_eq!(whole(&mut map, 4, Mode::InOut), [1, 2, 3]);
        assert_eq!(linked(&mut map, entry(5, 0..1), Mode::In), [4], "the others are superseded");
    }

    #[test]
    fn unordered_accesses_meet_all_but_those_of_their_mode() {
        let mut map = BottomMap::default();
        linked(&mut map, entry(1, 0..8), Mode::InOut);
        linked(&mut map, entry(2, 0..8), Mode::In);
        assert_eq!(linked(&mut map, entry(3, 0..4), Mode::Commutative), [1, 2]);
        assert_eq!(linked(&mut map, entry(4, 0..8), Mode::Commutative), [1, 2], "not 3");
        assert_eq!(linked(&mut map, entry(5, 0..4), Mode::Concurrent), [1, 2, 3, 4]);
        assert_eq!(linked(&mut map, entry(6, 0..1), Mode::Concurrent), [1, 2, 3, 4], "not 5");
        assert_eq!(linked(&mut map, entry(7, 4..8), Mode::In), [1, 4]);
        assert_eq!(linked(&mut map, entry(8, 0..8), Mode::Out), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(linked(&mut map, entry(9, 0..8), Mode::Commutative), [8]);
    }

    #[test]
    fn only_reads_do_not_grow_a_tile() {
        let mut map = BottomMap::default();
        for number in 0..10_000 {
            let read = entry(number, 0..8);
            read.head.close(number);
            map.register(read, Mode::In, |_| true);
        }
        assert!(map.reads.list.len() < 32, "{} entries", map.reads.list.len());
    }
}
