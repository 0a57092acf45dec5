//! Reductions in the tiles of an array: which ones tasks join, and when they end.
//!
//! A reduction is one region, one operator, and the tasks that fold into it. Tasks join it until an
//! access is declared that conflicts with it in any of its tiles; then it is *sealed*, and later
//! tasks begin another one. All of this happens under the lock of the array's group.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::bottom_map::{Entries, Entry};
use super::rtree::Placed;
use super::spatial_list::{Item, SpatialList};
use crate::data::Rect;

/// A reduction that tasks may join.
pub struct OpenReduction {
    rect: Rect,
    /// Set once no task joins any more.
    sealed: AtomicBool,
    /// Private copies, whose type only tasks with the same operator know.
    copies: Arc<dyn Any + Send + Sync>,
}

impl OpenReduction {
    pub(crate) fn new(rect: Rect, copies: Arc<dyn Any + Send + Sync>) -> Self {
        OpenReduction { rect, sealed: AtomicBool::new(false), copies }
    }

    pub(crate) fn copies(&self) -> &Arc<dyn Any + Send + Sync> {
        &self.copies
    }

    /// Seals the reduction: no task joins any more.
    pub(crate) fn seal(&self) {
        self.sealed.store(true, Ordering::Relaxed);
    }
}

/// The reductions of one tile.
#[derive(Default)]
pub(super) struct Reductions(SpatialList<InTile>);

/// A reduction and its accesses, all to the same part of the tile.
struct InTile {
    reduction: Arc<OpenReduction>,
    part: Rect,
    accesses: Entries,
}

impl Reductions {
    /// Returns the reduction over exactly `rect` that tasks may join.
    pub(super) fn open(&mut self, rect: &Rect) -> Option<Arc<OpenReduction>> {
        let mut found = None;
        self.0.visit(rect, &mut |in_tile| {
            let reduction = &in_tile.reduction;
            if reduction.rect == *rect && !reduction.sealed.load(Ordering::Relaxed) {
                found = Some(Arc::clone(reduction));
            }
            true
        });
        found
    }

    /// Seals the reductions that overlap `rect`, and removes their accesses for which `stays`
    /// returns `false`.
    pub(super) fn visit(&mut self, rect: &Rect, stays: &mut impl FnMut(&mut Entry) -> bool) {
        self.0.visit(rect, &mut |in_tile| {
            in_tile.reduction.seal();
            in_tile.accesses.visit_all(&mut *stays);
            !in_tile.accesses.is_empty()
        });
    }

    /// Visits the accesses of reductions that overlap `rect`, which are not sealed, and removes
    /// those for which `stays` returns `false`.
    pub(super) fn visit_unsealed(
        &mut self,
        rect: &Rect,
        stays: &mut impl FnMut(&mut Entry) -> bool,
    ) {
        self.0.visit(rect, &mut |in_tile| {
            in_tile.accesses.visit_all(&mut *stays);
            !in_tile.accesses.is_empty()
        });
    }

    /// Adds an access of `reduction`, and calls `link` for the others that it conflicts with.
    pub(super) fn register(
        &mut self,
        new: Entry,
        reduction: &Arc<OpenReduction>,
        link: &mut impl FnMut(&mut Entry) -> bool,
    ) {
        let mut joined = false;
        self.0.visit(&new.rect, &mut |in_tile| {
            if Arc::ptr_eq(&in_tile.reduction, reduction) {
                in_tile.add(new, link);
                joined = true;
            } else {
                in_tile.reduction.seal();
                in_tile.accesses.visit_all(&mut *link);
            }
            !in_tile.accesses.is_empty()
        });
        if !joined {
            let (reduction, part) = (Arc::clone(reduction), new.rect);
            let mut accesses = Entries::default();
            accesses.add(new);
            self.0.add(InTile { reduction, part, accesses });
        }
    }

    pub(super) fn any(&self, mut is_one: impl FnMut(&Entry) -> bool) -> bool {
        self.0.any(|in_tile| in_tile.accesses.any(&mut is_one))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl InTile {
    /// Adds an access of a task, which cannot have two copies.
    fn add(&mut self, new: Entry, link: &mut impl FnMut(&mut Entry) -> bool) {
        if let Some(last) = self.accesses.last().filter(|last| last.task == new.task) {
            link(last);
        }
        self.accesses.add(new);
    }
}

impl Placed for InTile {
    fn rect(&self) -> &Rect {
        &self.part
    }
}

impl Item for InTile {
    /// Returns `true` while an access of the reduction is open.
    fn is_open(&self) -> bool {
        self.accesses.any(Entry::is_open)
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;
    use crate::record::AccessHead;
    use crate::record::RecordId;

    const MANY: u32 = 200;

    fn part(number: u32) -> Rect {
        Rect::new(0, 1, 2 * number, 2 * number + 2)
    }

    fn entry(number: u32, rect: Rect) -> Entry {
        let head: &'static AccessHead = Box::leak(Box::new(AccessHead::new()));
        head.open(number);
        Entry { head, generation: number, task: RecordId::of_test(number), rect }
    }

    /// Registers an access, of the reduction that is open or a new one.
    fn register(all: &mut Reductions, number: u32, rect: Rect) -> Vec<u32> {
        let mut found = Vec::new();
        let new = || Arc::new(OpenReduction::new(rect, Arc::new(())));
        let reduction = all.open(&rect).unwrap_or_else(new);
        all.register(entry(number, rect), &reduction, &mut |earlier| {
            found.push(earlier.generation);
            true
        });
        found.sort_unstable();
        found
    }

    #[test]
    fn a_reduction_among_many_is_joined_until_something_meets_it() {
        let mut all = Reductions::default();
        for round in 0..2 {
            for number in 0..MANY {
                assert!(register(&mut all, round * MANY + number, part(number)).is_empty());
            }
        }
        assert_eq!(all.0.len(), MANY as usize, "the second round has joined the first");
        all.visit_unsealed(&part(0).around(&part(9)), &mut |_| true);
        assert!(all.open(&part(9)).is_some(), "a visit seals nothing");
        let across = Rect::new(0, 1, 3, 5);
        assert_eq!(register(&mut all, 1000, across), [1, 2, MANY + 1, MANY + 2]);
        assert!(all.open(&part(1)).is_none() && all.open(&part(2)).is_none());
        assert!(all.open(&part(0)).is_some() && all.open(&part(3)).is_some());
        assert_eq!(register(&mut all, 1001, part(1)), [1, MANY + 1, 1000]);
        let mut met = 0;
        all.visit(&Rect::new(0, 1, 0, 2 * MANY), &mut |_| {
            met += 1;
            false
        });
        assert_eq!(met, 2 * MANY + 2);
        assert!(all.is_empty());
    }

    #[test]
    fn reductions_that_are_over_do_not_grow_a_tile() {
        let mut all = Reductions::default();
        for number in 0..10_000 {
            let rect = part(number);
            let over = entry(number, rect);
            over.head.close(number);
            let reduction = Arc::new(OpenReduction::new(rect, Arc::new(())));
            all.register(over, &reduction, &mut |_| true);
        }
        assert!(all.0.len() < 64, "{} reductions", all.0.len());
    }
}
