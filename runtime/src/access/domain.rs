//! The dependency domain of a group: the bottom maps of its arrays, those of what tasks have lent,
//! and what failures spoilt.
//!
//! One lock a group, never held while anything else is waited for.

use std::sync::Arc;

use super::lending::Lendings;
use super::{BottomMap, OpenAccess};
use crate::data::Rect;
use crate::error::Failure;

/// The bottom maps of a group's arrays and the regions that failed tasks left undefined.
#[derive(Default)]
pub(crate) struct Domain {
    /// By the array's map index, one map a tile.
    maps: Vec<Box<[BottomMap]>>,
    free: Vec<usize>,
    poisoned: Vec<Poisoned>,
    pub(super) lendings: Lendings,
}

struct Poisoned {
    map: usize,
    rect: Rect,
    failure: Arc<Failure>,
}

impl Domain {
    /// Makes room for an array of `tiles` tiles and returns its map index.
    pub(crate) fn add_array(&mut self, tiles: usize) -> usize {
        let maps = std::iter::repeat_with(BottomMap::default).take(tiles).collect();
        match self.free.pop() {
            Some(index) => {
                self.maps[index] = maps;
                index
            }
            None => {
                self.maps.push(maps);
                self.maps.len() - 1
            }
        }
    }

    pub(crate) fn remove_array(&mut self, index: usize) {
        self.maps[index] = Box::default();
        self.poisoned.retain(|poisoned| poisoned.map != index);
        self.free.push(index);
    }

    pub(crate) fn any_open(&self, index: usize) -> bool {
        self.maps[index].iter().any(BottomMap::any_open)
    }

    /// The bottom maps of an array, by tile.
    #[inline]
    pub(super) fn maps(&mut self, index: usize) -> &mut [BottomMap] {
        &mut self.maps[index]
    }

    /// The bottom map of a tile, if it has only reads and writes and no failure spoilt anything.
    #[inline]
    pub(super) fn plain_map(&mut self, index: usize, tile: usize) -> Option<&mut BottomMap> {
        let map = &mut self.maps[index][tile];
        (map.has_order() && self.poisoned.is_empty()).then_some(map)
    }

    /// The failure that left some of `rect` of an array undefined.
    #[inline]
    pub(super) fn spoilt(&self, map: usize, rect: &Rect) -> Option<&Arc<Failure>> {
        let spoilt = |p: &&Poisoned| p.map == map && !rect.is_empty() && p.rect.overlaps(rect);
        self.poisoned.iter().find(spoilt).map(|poisoned| &poisoned.failure)
    }

    /// The failures that left some of `rect`, which is not empty, of an array undefined, and what
    /// each has spoilt.
    pub(super) fn all_spoilt<'a>(
        &'a self,
        map: usize,
        rect: &'a Rect,
    ) -> impl Iterator<Item = (&'a Rect, &'a Arc<Failure>)> {
        let spoilt = self.poisoned.iter().filter(move |p| p.map == map && p.rect.overlaps(rect));
        spoilt.map(|poisoned| (&poisoned.rect, &poisoned.failure))
    }

    /// The failure before `access`, which is open and writes, that left some of it undefined.
    pub(super) fn spoilt_before(&mut self, access: OpenAccess) -> Option<&Arc<Failure>> {
        let rect = access.slot().rect();
        match access.lender() {
            Some(lender) => self.lendings.of(lender).first_spoilt(&rect),
            None => self.spoilt(access.array().map_index(), &rect),
        }
    }

    /// Declares all data of the group defined again, and returns a failure that spoilt some.
    pub(crate) fn forgive(&mut self) -> Option<Arc<Failure>> {
        self.poisoned.drain(..).next().map(|poisoned| poisoned.failure)
    }
}

/// Records that a failed task left a region undefined. Called before the access closes, so a task
/// spawned later either finds this note or still finds the access open.
#[cold]
pub(super) fn poison(access: OpenAccess, failure: &Arc<Failure>) {
    let (core, rect) = (access.array(), access.slot().rect());
    let map = core.map_index();
    core.note_spoilt();
    let mut domain = core.domain().lock();
    let known = |p: &Poisoned| p.map == map && p.rect.covers(&rect);
    if !rect.is_empty() && !domain.poisoned.iter().any(known) {
        domain.poisoned.push(Poisoned { map, rect, failure: Arc::clone(failure) });
    }
    domain.lendings.note_failure(*access, failure);
}
