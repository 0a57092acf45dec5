//! The dependency domains of children, one for each access that is lent.
//!
//! A lending is created when an access is lent, or registered if it is weak, and removed when the
//! access closes. The lock of the arrays' group guards it, as all bottom maps.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::BottomMap;
use super::bottom_map::Entry;
use crate::data::{Mode, Rect, Tiles};
use crate::error::Failure;
use crate::record::{AccessHead, AccessId};

/// The lendings of a group's arrays.
#[derive(Default)]
pub(crate) struct Lendings(HashMap<Lender, Lending>);

/// The access that is lent, by the address of its state word.
type Lender = usize;

fn lender(head: &'static AccessHead) -> Lender {
    std::ptr::from_ref(head).addr()
}

/// The children's uses of an access of their parent.
pub(super) struct Lending {
    rect: Rect,
    /// Bottom maps by tile of the array.
    maps: HashMap<usize, BottomMap>,
    /// Regions that failed tasks have poisoned, for children that are spawned later.
    poisoned: Vec<(Rect, Arc<Failure>)>,
}

impl Lending {
    pub(super) fn of(rect: Rect) -> Self {
        Lending { rect, maps: HashMap::new(), poisoned: Vec::new() }
    }

    /// Returns the children's accesses of a tile.
    pub(super) fn map(&mut self, tile: usize) -> &mut BottomMap {
        self.maps.entry(tile).or_default()
    }

    /// Sets the accesses that the first children of a weak access find in a tile.
    pub(super) fn begin_with(&mut self, tile: usize, map: BottomMap) {
        self.maps.insert(tile, map);
    }

    /// Records, for children, that a failure has poisoned some of `rect`.
    pub(super) fn note(&mut self, rect: &Rect, failure: &Arc<Failure>) {
        let rect = rect.intersection(&self.rect);
        if !rect.is_empty() && !self.poisoned.iter().any(|(known, _)| known.covers(&rect)) {
            self.poisoned.push((rect, Arc::clone(failure)));
        }
    }

    /// Returns the failures that have poisoned some of `rect`, which is not empty.
    pub(super) fn poisoned<'a>(
        &'a self,
        rect: &'a Rect,
    ) -> impl Iterator<Item = (&'a Rect, &'a Arc<Failure>)> {
        let poisoned = self.poisoned.iter().filter(|(poisoned, _)| poisoned.overlaps(rect));
        poisoned.map(|(rect, failure)| (rect, failure))
    }

    /// Returns a failure that has poisoned some of `rect`.
    pub(super) fn first_poisoned(&self, rect: &Rect) -> Option<&Arc<Failure>> {
        let poisons = |(poisoned, _): &&(Rect, _)| !rect.is_empty() && poisoned.overlaps(rect);
        self.poisoned.iter().find(poisons).map(|(_, failure)| failure)
    }

    /// Returns `true` if `is_one` holds for an access of a child, or for one that came before.
    fn any(&self, mut is_one: impl FnMut(&Entry) -> bool) -> bool {
        self.maps.values().any(|map| map.any(&mut is_one))
    }
}

impl Lendings {
    pub(super) fn add(&mut self, head: &'static AccessHead, lending: Lending) {
        self.0.insert(lender(head), lending);
    }

    pub(super) fn remove(&mut self, head: &'static AccessHead) -> Option<Lending> {
        self.0.remove(&lender(head))
    }

    /// Returns the lending of an access that is lent and has not closed.
    pub(super) fn of(&mut self, access: AccessId) -> &mut Lending {
        match self.0.get_mut(&lender(&access.slot().head)) {
            Some(lending) => lending,
            None => unreachable!("a lending is forgotten when its access closes"),
        }
    }

    /// Returns `true` if no access is open inside a lent access or before it, and nothing of it is
    /// poisoned.
    pub(super) fn is_done_with(&self, head: &'static AccessHead) -> bool {
        self.0
            .get(&lender(head))
            .is_none_or(|lending| lending.poisoned.is_empty() && !lending.any(Entry::is_open))
    }

    /// Calls `visit` for every open access inside a passed-on one that conflicts with `rect` in
    /// `mode`, and for those that touch no element: the array is freed after the task that waits
    /// here.
    pub(super) fn for_each_conflict(
        &mut self,
        passed_on: &'static AccessHead,
        tiles: &Tiles,
        rect: &Rect,
        mode: Mode,
        mut visit: impl FnMut(&Entry),
    ) {
        let Some(lending) = self.0.get_mut(&lender(passed_on)) else {
            return;
        };
        if let Some(map) = lending.maps.get_mut(&0) {
            map.for_each_empty(&mut visit);
        }
        let rect = rect.intersection(&lending.rect);
        if rect.is_empty() {
            return;
        }
        tiles.for_each(&rect, |tile, rect| {
            if let Some(map) = lending.maps.get_mut(&tile) {
                map.for_each_conflict(&rect, mode, &mut visit);
            }
        });
    }

    /// Records the failure of `access` for children that come after it: those of its own parent and
    /// of every ancestor, and those of tasks that have found one of these accesses in a map.
    pub(super) fn note_failure(&mut self, access: AccessId, failure: &Arc<Failure>) {
        let from = std::iter::successors(Some(access), |access| access.lender());
        let mut poisons: HashSet<Lender> = from.map(|access| lender(&access.slot().head)).collect();
        let mut noted = HashSet::new();
        loop {
            // A closed entry may be of an earlier access in the same place.
            let is_one = |entry: &Entry| entry.is_open() && poisons.contains(&lender(entry.head));
            let remembers = |lending: &Lending| lending.any(is_one);
            let after = |(of, lending): &(&Lender, &Lending)| {
                !noted.contains(*of) && (poisons.contains(*of) || remembers(lending))
            };
            let found: Vec<Lender> = self.0.iter().filter(after).map(|(of, _)| *of).collect();
            if found.is_empty() {
                break;
            }
            noted.extend(&found);
            poisons.extend(&found);
        }
        let rect = access.slot().rect();
        for of in &noted {
            self.0.get_mut(of).into_iter().for_each(|lending| lending.note(&rect, failure));
        }
    }
}
