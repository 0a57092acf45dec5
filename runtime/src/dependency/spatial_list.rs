//! A list of items in a tile, searched by overlap.
//!
//! The list is plain while it is short, and as long as searches find most of its items: adding is a
//! push. A search that has passed by more than [`SHORT`] items moves the items of the list into an
//! [`RTree`]; later ones are listed again. So items that are never searched, as the readers of a
//! tile that nobody writes, are never sorted, and a search passes by few items.
//!
//! Closed items are removed when they are met, and all of them whenever the list is full or the
//! tree has doubled: that costs every item a constant share, and the list keeps at most about twice
//! as many items as were open.

use super::rtree::{Placed, RTree};
use crate::data::Rect;

/// Largest number of items that searches pass by one after another.
const SHORT: usize = 16;
const ROOM_AT_LEAST: usize = 4;

/// An item that closes at some time.
pub(crate) trait Item: Placed {
    fn is_open(&self) -> bool;
}

/// Items of a tile.
pub(crate) struct SpatialList<T> {
    list: Vec<T>,
    index: Option<Box<Index<T>>>,
}

/// Items that were moved out of the list.
struct Index<T> {
    tree: RTree<T>,
    /// Number of items at which closed ones are searched for.
    full: usize,
}

impl<T> Default for SpatialList<T> {
    fn default() -> Self {
        SpatialList { list: Vec::new(), index: None }
    }
}

impl<T: Item> SpatialList<T> {
    /// Visits the items that overlap `rect`, in any order, and removes those for which `stays`
    /// returns `false`.
    #[inline]
    pub(crate) fn visit(&mut self, rect: &Rect, stays: &mut impl FnMut(&mut T) -> bool) {
        self.visit_list(|item| !item.rect().overlaps(rect) || stays(item));
        if self.index.is_some() {
            self.visit_index(|tree| tree.visit(rect, stays));
        }
        if self.list.len() > SHORT {
            self.index_missed(rect);
        }
    }

    /// Visits all items as [`SpatialList::visit`] does.
    #[inline]
    pub(super) fn visit_all(&mut self, mut stays: impl FnMut(&mut T) -> bool) {
        self.visit_list(&mut stays);
        if self.index.is_some() {
            self.visit_index(|tree| tree.visit_all(&mut stays));
        }
    }

    /// Visits all items and removes them.
    #[inline]
    pub(super) fn take_all(&mut self, mut visit: impl FnMut(&mut T)) {
        self.list.iter_mut().for_each(&mut visit);
        self.list.clear();
        if self.index.is_some() {
            self.take_index().iter_mut().for_each(visit);
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, new: T) {
        if self.list.len() == self.list.capacity() {
            self.make_room();
        }
        self.list.push(new);
    }

    /// Returns the item that was added last, unless any was removed since.
    pub(super) fn last(&mut self) -> Option<&mut T> {
        self.list.last_mut()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty() && self.index.is_none()
    }

    #[cfg(all(test, not(talpf_loom)))]
    pub(super) fn len(&self) -> usize {
        self.list.len() + self.index.as_ref().map_or(0, |index| index.tree.len())
    }

    /// Returns `true` if `is_one` holds for an item.
    pub(super) fn any(&self, mut is_one: impl FnMut(&T) -> bool) -> bool {
        self.list.iter().any(&mut is_one)
            || self.index.as_ref().is_some_and(|index| index.tree.any(&mut is_one))
    }

    #[inline]
    fn visit_list(&mut self, mut stays: impl FnMut(&mut T) -> bool) {
        let mut at = 0;
        while let Some(item) = self.list.get_mut(at) {
            if stays(item) {
                at += 1;
            } else {
                self.list.swap_remove(at);
            }
        }
    }

    #[inline(never)]
    fn visit_index(&mut self, visit: impl FnOnce(&mut RTree<T>)) {
        if let Some(index) = &mut self.index {
            visit(&mut index.tree);
            if index.tree.len() == 0 {
                self.index = None;
            }
        }
    }

    /// Removes the tree and returns its items.
    #[cold]
    fn take_index(&mut self) -> Vec<T> {
        self.index.take().map_or_else(Vec::new, |index| index.tree.into_items())
    }

    /// Moves the list into the tree if a search for `rect` has passed by many of its items.
    #[cold]
    fn index_missed(&mut self, rect: &Rect) {
        let missed = self.list.iter().filter(|item| !item.rect().overlaps(rect)).count();
        if missed <= SHORT {
            return;
        }
        match &mut self.index {
            Some(index) if index.tree.len() + self.list.len() <= index.full => {
                self.list.drain(..).for_each(|item| index.tree.insert(item));
            }
            _ => self.build_index(),
        }
    }

    /// Builds a tree of all open items.
    fn build_index(&mut self) {
        let mut items = self.take_index();
        items.append(&mut self.list);
        items.retain(Item::is_open);
        if items.len() <= SHORT / 2 {
            self.list = items;
            return;
        }
        let full = 2 * items.len();
        self.index = Some(Box::new(Index { tree: RTree::new(items), full }));
    }

    /// Removes closed items from the list, which grows if most are open.
    #[cold]
    fn make_room(&mut self) {
        let full = self.list.len();
        self.list.retain(Item::is_open);
        if self.list.len() > full / 2 || full == 0 {
            self.list.reserve_exact(ROOM_AT_LEAST.max(full));
        }
    }
}
