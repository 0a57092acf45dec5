//! Reductions as the tiles of an array know them: who joins which, and what ends one.
//!
//! A reduction is one region, one operator, and the tasks that fold into it. Tasks join it until
//! something is declared that conflicts with it in any of its tiles; then it is *sealed*, and
//! later tasks begin another one. All of this happens under the lock of the array's group.

use std::any::{Any, TypeId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Declared;
use super::bottom_map::{Entries, Entry};
use crate::data::Rect;

/// A reduction that tasks may join.
pub struct OpenReduction {
    rect: Rect,
    /// Set for good.
    sealed: AtomicBool,
    /// The private copies, which only those know that fold with the same operator.
    copies: Arc<dyn Any + Send + Sync>,
}

/// A reduction access that is about to be registered.
pub trait Joins {
    /// Joins the reduction that is open over exactly its region if it has the same operator, or
    /// begins one. Returns which it is.
    #[doc(hidden)]
    fn join(
        &self,
        open: Option<&Arc<OpenReduction>>,
        declared: &Declared<'_>,
    ) -> Arc<OpenReduction>;

    /// Says that its task is replayed: it stays in the reduction, and brings something every step.
    #[doc(hidden)]
    fn stay(&self);

    /// What tells its operator from others, on the same type of elements.
    #[doc(hidden)]
    fn operator(&self) -> TypeId;
}

impl OpenReduction {
    pub(crate) fn new(rect: Rect, copies: Arc<dyn Any + Send + Sync>) -> Self {
        OpenReduction { rect, sealed: AtomicBool::new(false), copies }
    }

    pub(crate) fn copies(&self) -> &Arc<dyn Any + Send + Sync> {
        &self.copies
    }

    /// Nobody joins any more.
    pub(crate) fn seal(&self) {
        self.sealed.store(true, Ordering::Relaxed);
    }
}

/// The reductions of one tile.
#[derive(Default)]
pub(super) struct Reductions {
    list: Vec<InTile>,
}

/// A reduction and its accesses, all to the same part of the tile.
struct InTile {
    reduction: Arc<OpenReduction>,
    part: Rect,
    accesses: Entries,
}

impl Reductions {
    /// The reduction over exactly `rect` that tasks may join.
    pub(super) fn open(&self, rect: &Rect) -> Option<&Arc<OpenReduction>> {
        let open = |reduction: &&Arc<OpenReduction>| {
            reduction.rect == *rect && !reduction.sealed.load(Ordering::Relaxed)
        };
        self.list.iter().map(|in_tile| &in_tile.reduction).find(open)
    }

    /// Seals the reductions that overlap `rect`, and forgets their accesses that `stays` says no to.
    pub(super) fn visit(&mut self, rect: &Rect, stays: &mut impl FnMut(&Entry) -> bool) {
        self.list.retain_mut(|in_tile| {
            if in_tile.part.overlaps(rect) {
                in_tile.reduction.seal();
                in_tile.accesses.visit(rect, stays);
            }
            !in_tile.accesses.is_empty()
        });
    }

    /// Adds an access of `reduction`, and calls `link` for the others that it conflicts with.
    pub(super) fn register(
        &mut self,
        new: Entry,
        reduction: &Arc<OpenReduction>,
        link: &mut impl FnMut(&Entry) -> bool,
    ) {
        let mut own = None;
        for (at, in_tile) in self.list.iter_mut().enumerate() {
            if Arc::ptr_eq(&in_tile.reduction, reduction) {
                own = Some(at);
            } else if in_tile.part.overlaps(&new.rect) {
                in_tile.reduction.seal();
                in_tile.accesses.visit(&new.rect, link);
            }
        }
        let own = own.unwrap_or_else(|| {
            let (reduction, part) = (Arc::clone(reduction), new.rect);
            self.list.retain(|in_tile| !in_tile.accesses.is_empty());
            self.list.push(InTile { reduction, part, accesses: Entries::default() });
            self.list.len() - 1
        });
        let accesses = &mut self.list[own].accesses;
        // Its own task cannot have two copies.
        if let Some(last) = accesses.last().filter(|last| last.task == new.task) {
            link(last);
        }
        accesses.add(new);
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.list.iter().flat_map(|in_tile| in_tile.accesses.iter())
    }
}
