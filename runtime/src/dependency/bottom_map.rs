//! The last accesses of one tile.
//!
//! A new access conflicts with every open access that overlaps it if either of them writes. A write
//! also supersedes the accesses that it covers completely: later accesses need to know the write
//! only. Closed entries are removed when they are met, and all of them whenever a list has doubled,
//! so the list of a tile that is only read does not grow. Reads are never compared with other
//! reads. An access to the whole tile conflicts with everything in it and compares no rectangles.
//! Parts of a tile are searched for by position once there are more than a few.

use std::sync::Arc;

use super::OpenReduction;
use super::reductions::Reductions;
use super::rtree::Placed;
use super::spatial_list::{Item, SpatialList};
use crate::data::{Mode, Rect};
use crate::record::{AccessHead, RecordId};

/// An access in a bottom map.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) head: &'static AccessHead,
    /// Generation of the record the access lives in.
    pub(crate) generation: u32,
    pub(crate) task: RecordId,
    /// The part of the region that lies in this tile.
    pub(crate) rect: Rect,
}

/// Accesses of one tile.
pub(super) type Entries = SpatialList<Entry>;

/// The accesses of one tile that later ones may have to wait for.
#[derive(Default)]
pub(crate) struct BottomMap {
    writes: Entries,
    reads: Entries,
    /// Allocated for the first such access.
    unordered: Option<Box<Unordered>>,
}

/// Accesses that do not conflict with others of their mode, and those that touch no element.
#[derive(Default)]
struct Unordered {
    concurrent: Entries,
    commutative: Commutative,
    reductions: Reductions,
    empty: Entries,
}

/// Commutative accesses, which are not compared with those of other tasks.
#[derive(Default)]
struct Commutative {
    others: Entries,
    /// Accesses of the task that was the last to register one.
    newest: Entries,
    task: Option<RecordId>,
}

impl Unordered {
    /// Returns `true` if any access touches an element.
    #[cold]
    fn meets(&self) -> bool {
        !(self.concurrent.is_empty() && self.commutative.is_empty() && self.reductions.is_empty())
    }
}

impl BottomMap {
    /// Adds `new` and calls `link` for every access that it conflicts with; `link` returns `true`
    /// if that access is still open.
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
        let mut stays =
            |entry: &mut Entry| link(entry) && !(covers && new.rect.covers(&entry.rect));
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

    /// Returns `true` if only reads and writes touch an element.
    #[inline]
    pub(super) fn has_order(&self) -> bool {
        self.unordered.as_ref().is_none_or(|unordered| !unordered.meets())
    }

    /// Registers a read or write of the whole tile, if only reads and writes touch an element.
    #[inline]
    pub(crate) fn register_whole(
        &mut self,
        new: Entry,
        mode: Mode,
        mut link: impl FnMut(&Entry) -> bool,
    ) {
        if mode.writes() {
            self.writes.take_all(|earlier| _ = link(earlier));
            self.reads.take_all(|earlier| _ = link(earlier));
            self.writes.add(new);
        } else {
            self.writes.visit_all(|earlier| link(earlier));
            self.reads.add(new);
        }
    }

    /// Registers a concurrent or commutative access, which supersedes nothing: the next one of its
    /// mode does not wait for it, so it has to find the accesses that this one has waited for.
    #[cold]
    fn register_unordered(&mut self, new: Entry, mode: Mode, mut link: impl FnMut(&Entry) -> bool) {
        let mut link = |entry: &mut Entry| link(entry);
        self.writes.visit(&new.rect, &mut link);
        self.reads.visit(&new.rect, &mut link);
        let unordered = self.unordered.get_or_insert_default();
        unordered.reductions.visit(&new.rect, &mut link);
        if mode == Mode::Concurrent {
            unordered.commutative.visit(&new.rect, &mut link);
            unordered.concurrent.add(new);
        } else {
            unordered.concurrent.visit(&new.rect, &mut link);
            unordered.commutative.register(new, &mut link);
        }
    }

    /// Returns `true` if no open access conflicts with one of `mode` to `rect`, which reads or writes.
    #[inline]
    pub(super) fn is_free(&mut self, rect: &Rect, mode: Mode) -> bool {
        let mut free = self.has_order();
        let visit = &mut |entry: &mut Entry| entry.visit_if_open(|_| free = false);
        self.writes.visit(rect, visit);
        if mode.writes() {
            self.reads.visit(rect, visit);
        }
        free
    }

    /// Registers an access that has joined `reduction`. It supersedes nothing either.
    #[cold]
    pub(crate) fn register_reduction(
        &mut self,
        new: Entry,
        reduction: &Arc<OpenReduction>,
        mut link: impl FnMut(&Entry) -> bool,
    ) {
        let mut link = |entry: &mut Entry| link(entry);
        self.writes.visit(&new.rect, &mut link);
        self.reads.visit(&new.rect, &mut link);
        let unordered = self.unordered.get_or_insert_default();
        unordered.concurrent.visit(&new.rect, &mut link);
        unordered.commutative.visit(&new.rect, &mut link);
        unordered.reductions.register(new, reduction, &mut link);
    }

    /// Returns the reduction over exactly `rect` that tasks may join.
    pub(crate) fn open_reduction(&mut self, rect: &Rect) -> Option<Arc<OpenReduction>> {
        self.unordered.as_mut()?.reductions.open(rect)
    }

    /// Adds an access that touches no element, so that its array is kept.
    pub(crate) fn register_empty(&mut self, new: Entry) {
        self.unordered.get_or_insert_default().empty.add(new);
    }

    /// Calls `visit` for every open access that touches no element.
    pub(crate) fn for_each_empty(&mut self, mut visit: impl FnMut(&Entry)) {
        if let Some(unordered) = &mut self.unordered {
            unordered.empty.visit_all(|entry| entry.visit_if_open(&mut visit));
        }
    }

    /// Returns `true` if any access in the map is open.
    pub(crate) fn any_open(&self) -> bool {
        self.any(Entry::is_open)
    }

    /// Returns `true` if `is_one` holds for an access in the map, which may have closed.
    pub(super) fn any(&self, mut is_one: impl FnMut(&Entry) -> bool) -> bool {
        let among_unordered = |unordered: &Unordered, is_one: &mut _| {
            let Unordered { concurrent, commutative, reductions, empty } = unordered;
            concurrent.any(&mut *is_one)
                || commutative.others.any(&mut *is_one)
                || commutative.newest.any(&mut *is_one)
                || reductions.any(&mut *is_one)
                || empty.any(is_one)
        };
        let is_one = &mut is_one;
        self.writes.any(&mut *is_one)
            || self.reads.any(&mut *is_one)
            || self.unordered.as_ref().is_some_and(|unordered| among_unordered(unordered, is_one))
    }

    /// Calls `visit` for every open access that a new one of `mode` to `rect` would wait for.
    pub(super) fn for_each_conflict(
        &mut self,
        rect: &Rect,
        mode: Mode,
        mut visit: impl FnMut(&Entry),
    ) {
        let visit = &mut |entry: &mut Entry| entry.visit_if_open(&mut visit);
        self.writes.visit(rect, visit);
        if mode != Mode::In {
            self.reads.visit(rect, visit);
        }
        let Some(unordered) = &mut self.unordered else { return };
        if mode != Mode::Concurrent {
            unordered.concurrent.visit(rect, visit);
        }
        if mode != Mode::Commutative {
            unordered.commutative.visit(rect, visit);
        }
        unordered.reductions.visit_unsealed(rect, visit);
    }

    /// Returns the part of the map that a new access of `mode` to `rect` would wait for. No task
    /// joins the reductions in it, so all wait for them as for writes.
    pub(super) fn inherit(&mut self, rect: &Rect, mode: Mode) -> BottomMap {
        let mut left = BottomMap::default();
        let copy = |from: &mut Entries, to: &mut Entries| {
            from.visit(rect, &mut |entry| entry.visit_if_open(|entry| to.add(*entry)));
        };
        copy(&mut self.writes, &mut left.writes);
        if mode != Mode::In {
            copy(&mut self.reads, &mut left.reads);
        }
        let Some(own) = &mut self.unordered else { return left };
        let mut unordered = Box::new(Unordered::default());
        if mode != Mode::Concurrent {
            copy(&mut own.concurrent, &mut unordered.concurrent);
        }
        if mode != Mode::Commutative {
            copy(&mut own.commutative.others, &mut unordered.commutative.others);
            copy(&mut own.commutative.newest, &mut unordered.commutative.others);
        }
        let writes = &mut left.writes;
        let copy = |entry: &mut Entry| entry.visit_if_open(|entry| writes.add(*entry));
        own.reductions.visit_unsealed(rect, &mut { copy });
        left.unordered = unordered.meets().then_some(unordered);
        left
    }
}

impl Commutative {
    /// Adds an access and calls `link` for those of its own task that it overlaps: a task cannot
    /// lock a tile twice.
    fn register(&mut self, new: Entry, link: &mut impl FnMut(&mut Entry) -> bool) {
        if self.task.replace(new.task) != Some(new.task) {
            let Commutative { others, newest, .. } = self;
            newest.take_all(|entry| others.add(*entry));
        }
        self.newest.visit(&new.rect, link);
        self.newest.add(new);
    }

    fn visit(&mut self, rect: &Rect, stays: &mut impl FnMut(&mut Entry) -> bool) {
        self.others.visit(rect, stays);
        self.newest.visit(rect, stays);
    }

    fn is_empty(&self) -> bool {
        self.others.is_empty() && self.newest.is_empty()
    }
}

impl Placed for Entry {
    #[inline]
    fn rect(&self) -> &Rect {
        &self.rect
    }
}

impl Item for Entry {
    #[inline]
    fn is_open(&self) -> bool {
        self.head.is_open(self.generation)
    }
}

impl Entry {
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.head.is_open(self.generation)
    }

    /// Calls `visit` if the access is open, and returns `true` in that case.
    fn visit_if_open(&self, visit: impl FnOnce(&Entry)) -> bool {
        let open = self.is_open();
        if open {
            visit(self);
        }
        open
    }

    /// Returns `true` if the access was passed on, so that conflicts inside it have to be searched.
    #[inline]
    pub(super) fn is_passed_on(&self) -> bool {
        self.head.is_passed_on(self.generation)
    }

    /// Adds the access, once, to those inside which conflicts have to be searched.
    #[cold]
    pub(super) fn note_in(&self, behind: &mut Vec<&'static AccessHead>) {
        if !behind.iter().any(|known| std::ptr::eq(*known, self.head)) {
            behind.push(self.head);
        }
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests;
