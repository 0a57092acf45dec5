//! The dependency domain of a group: the bottom maps of its arrays, and what failures spoilt.
//!
//! One lock a group. A spawn takes it once for all accesses of the task, so tasks of one group are
//! ordered as they are spawned; a task over arrays of several groups takes their locks in a fixed
//! order. The lock is never held while anything else is waited for.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::bottom_map::Entry;
use super::{AccessId, AccessSlot, BottomMap, EdgeId};
use crate::data::Rect;
use crate::error::Failure;
use crate::sync::Ordering;
use crate::task::{self, Accesses, Record, RecordId, Role};

/// The bottom maps of a group's arrays and the regions that failed tasks left undefined.
#[derive(Default)]
pub(crate) struct Domain {
    /// By the array's map index, one map a tile.
    maps: Vec<Box<[BottomMap]>>,
    free: Vec<usize>,
    poisoned: Vec<Poisoned>,
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

    /// Declares all data of the group defined again, and returns a failure that spoilt some.
    pub(crate) fn forgive(&mut self) -> Option<Arc<Failure>> {
        self.poisoned.drain(..).next().map(|poisoned| poisoned.failure)
    }
}

/// Registers the accesses of an unshared task and links it to every open access that conflicts
/// with one of them. Returns the number of links.
pub(crate) fn register(id: RecordId, task: &'static Record) -> u32 {
    let mut linker = Linker { id, task, edges: 0 };
    let mut accesses = Accesses::of(task);
    let first = accesses.clone().map(|access| domain_of(access.slot())).next();
    let Some(first) = first else { return 0 };
    if accesses.clone().all(|access| std::ptr::eq(domain_of(access.slot()), first)) {
        let mut domain = first.lock();
        if task.role() == Role::Cleanup {
            accesses.clone().for_each(|access| linker.wait_for_empty(&domain, access));
        }
        accesses.for_each(|access| linker.access(&mut domain, access));
    } else {
        linker.over_several_domains(&mut accesses);
    }
    linker.edges
}

struct Linker {
    id: RecordId,
    task: &'static Record,
    edges: u32,
}

impl Linker {
    #[inline]
    fn access(&mut self, domain: &mut Domain, access: AccessId) {
        let slot = access.slot();
        let (core, rect) = (slot.array(), slot.rect());
        let maps = &mut domain.maps[core.map_index()];
        let new = Entry { head: &slot.head, generation: access.generation(), rect };
        match core.single_tile(&rect) {
            Some(tile) => {
                maps[tile].register(new, slot.writes(), |earlier| self.link(earlier));
            }
            None => self.several_tiles(maps, slot, new),
        }
        if !domain.poisoned.is_empty() {
            self.poison(&domain.poisoned, core.map_index(), &rect);
        }
    }

    /// Registers a region of several tiles, or of none.
    #[cold]
    fn several_tiles(&mut self, maps: &mut [BottomMap], slot: &AccessSlot, new: Entry) {
        if new.rect.is_empty() {
            maps[0].register_empty(new);
            return;
        }
        slot.array().for_each_tile(&new.rect, |tile, rect| {
            let part = Entry { rect, ..new };
            maps[tile].register(part, slot.writes(), |earlier| self.link(earlier));
        });
    }

    /// Makes a task that frees an array wait for the accesses that touch no element, too.
    #[cold]
    fn wait_for_empty(&mut self, domain: &Domain, access: AccessId) {
        let maps = &domain.maps[access.slot().array().map_index()];
        maps[0].for_each_empty(|earlier| {
            self.link(earlier);
        });
    }

    /// Keeps the task from running if it uses what a failed task left undefined.
    #[cold]
    fn poison(&self, poisoned: &[Poisoned], map: usize, rect: &Rect) {
        let spoilt = |p: &&Poisoned| p.map == map && !rect.is_empty() && p.rect.overlaps(rect);
        if let Some(poisoned) = poisoned.iter().find(spoilt) {
            self.task.poison(&poisoned.failure);
        }
    }

    /// Makes the task wait for an earlier access if that is still open.
    #[inline]
    fn link(&mut self, earlier: &Entry) -> bool {
        earlier.is_open() && self.push_edge(earlier)
    }

    fn push_edge(&mut self, earlier: &Entry) -> bool {
        let edge_id: EdgeId = task::edge(self.id, self.edges as usize);
        let edge = edge_id.edge();
        edge.successor.store(self.id.index(), Ordering::Relaxed);
        let linked =
            earlier.head.push(earlier.generation, edge_id.bits(), |next| edge.set_next(next));
        self.edges += u32::from(linked);
        linked
    }

    #[cold]
    fn over_several_domains(&mut self, accesses: &mut Accesses) {
        let mut domains: Vec<_> = accesses.clone().map(|a| domain_of(a.slot())).collect();
        domains.sort_by_key(|domain| std::ptr::from_ref(*domain));
        domains.dedup_by_key(|domain| std::ptr::from_ref(*domain));
        let mut locked: Vec<(*const Mutex<Domain>, MutexGuard<'_, Domain>)> =
            domains.iter().map(|domain| (std::ptr::from_ref(*domain), domain.lock())).collect();
        for access in accesses {
            let wanted = std::ptr::from_ref(domain_of(access.slot()));
            for (domain, guard) in &mut locked {
                if *domain == wanted {
                    self.access(guard, access);
                }
            }
        }
    }
}

/// Records that a failed task left a region undefined. Called before the access closes, so a task
/// spawned later either finds this note or still finds the access open.
#[cold]
pub(super) fn poison(slot: &AccessSlot, failure: &Arc<Failure>) {
    let (core, rect) = (slot.array(), slot.rect());
    let map = core.map_index();
    let mut domain = core.domain().lock();
    let known = |p: &Poisoned| p.map == map && p.rect.covers(&rect);
    if !rect.is_empty() && !domain.poisoned.iter().any(known) {
        domain.poisoned.push(Poisoned { map, rect, failure: Arc::clone(failure) });
    }
}

#[inline]
fn domain_of(slot: &AccessSlot) -> &'static Mutex<Domain> {
    slot.array().domain()
}
