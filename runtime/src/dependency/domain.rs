//! The dependency domain of a group: the bottom maps of its arrays and of lent accesses, and the
//! regions poisoned by failures.
//!
//! A group has one such lock, never held during a wait.

use std::sync::Arc;

use super::BottomMap;
use super::lending::Lendings;
use crate::data::{ArrayCore, Mode, Rect};
use crate::error::Failure;
use crate::record::AccessId;

/// The bottom maps of a group's arrays and the regions that failed tasks have poisoned.
#[derive(Default)]
pub(crate) struct Domain {
    /// Maps by the array's map index, one a tile.
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
    /// Adds maps for an array of `tiles` tiles and returns its map index.
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

    /// Returns the bottom maps of an array, by tile.
    #[inline]
    pub(super) fn maps(&mut self, index: usize) -> &mut [BottomMap] {
        &mut self.maps[index]
    }

    /// Returns the bottom map of a tile, if it has only reads and writes and the domain has no
    /// poisoned region.
    #[inline]
    pub(super) fn plain_map(&mut self, index: usize, tile: usize) -> Option<&mut BottomMap> {
        let map = &mut self.maps[index][tile];
        (map.has_order() && self.poisoned.is_empty()).then_some(map)
    }

    /// Returns `true` if a new access of `mode`, which reads or writes, to `rect` of an array would wait for
    /// nothing, and nothing has poisoned it.
    pub(crate) fn is_free(&mut self, array: &ArrayCore, rect: &Rect, mode: Mode) -> bool {
        if self.poisoned_by(array.map_index(), rect).is_some() {
            return false;
        }
        let maps = self.maps(array.map_index());
        if let Some(tile) = array.tiles().single(rect) {
            return maps[tile].is_free(rect, mode);
        }
        let mut free = true;
        if rect.is_empty() {
            return free;
        }
        array.tiles().for_each(rect, |tile, rect| free &= maps[tile].is_free(&rect, mode));
        free
    }

    /// Returns a failure that has poisoned some of `rect` of an array.
    #[inline]
    pub(super) fn poisoned_by(&self, map: usize, rect: &Rect) -> Option<&Arc<Failure>> {
        let overlaps = |p: &&Poisoned| p.map == map && !rect.is_empty() && p.rect.overlaps(rect);
        self.poisoned.iter().find(overlaps).map(|poisoned| &poisoned.failure)
    }

    /// Returns the failures that have poisoned some of `rect`, which is not empty, of an array,
    /// each with the region it has poisoned.
    pub(super) fn all_poisoned<'a>(
        &'a self,
        map: usize,
        rect: &'a Rect,
    ) -> impl Iterator<Item = (&'a Rect, &'a Arc<Failure>)> {
        let poisoned = self.poisoned.iter().filter(move |p| p.map == map && p.rect.overlaps(rect));
        poisoned.map(|poisoned| (&poisoned.rect, &poisoned.failure))
    }

    /// Returns a failure before `access`, which is open and writes, that has poisoned some of it.
    /// Its array has the maps `map`.
    pub(super) fn poisoned_before(
        &mut self,
        access: AccessId,
        map: usize,
    ) -> Option<&Arc<Failure>> {
        let rect = access.slot().rect();
        match access.lender() {
            Some(lender) => self.lendings.of(lender).first_poisoned(&rect),
            None => self.poisoned_by(map, &rect),
        }
    }

    /// Records that `access`, of a failed task, has poisoned a region of the array with the maps
    /// `map`.
    pub(super) fn poison(&mut self, access: AccessId, map: usize, failure: &Arc<Failure>) {
        let rect = access.slot().rect();
        let known = |p: &Poisoned| p.map == map && p.rect.covers(&rect);
        if !rect.is_empty() && !self.poisoned.iter().any(known) {
            self.poisoned.push(Poisoned { map, rect, failure: Arc::clone(failure) });
        }
        self.lendings.note_failure(access, failure);
    }

    /// Declares all data of the group defined again, and returns a failure that had poisoned some.
    pub(crate) fn forgive(&mut self) -> Option<Arc<Failure>> {
        self.poisoned.drain(..).next().map(|poisoned| poisoned.failure)
    }
}
