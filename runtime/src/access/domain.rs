//! The dependency domain of a group: the bottom maps of its arrays, and what failures spoilt.
//!
//! One lock a group. A spawn takes it once for all accesses of the task, so tasks of one group are
//! ordered as they are spawned; a task over arrays of several groups takes their locks in a fixed
//! order. The lock is never held while anything else is waited for.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::bottom_map::Entry;
use super::{AccessId, AccessSlot, BottomMap, EdgeId};
use crate::data::{ArrayCore, Rect};
use crate::error::Failure;
use crate::sync::Ordering;
use crate::task::{self, RecordId, Role};

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
pub(crate) fn register(id: RecordId, count: usize) -> u32 {
    let mut linker = Linker { id, edges: 0 };
    let first = task::access(id, 0).slot().core();
    let single = (1..count).all(|index| {
        let core = task::access(id, index).slot().core();
        core == first || std::ptr::eq(domain_of(core), domain_of(first))
    });
    if single {
        let mut domain = domain_of(first).lock();
        for index in 0..count {
            linker.access(&mut domain, task::access(id, index));
        }
    } else {
        linker.over_several_domains(count);
    }
    linker.edges
}

struct Linker {
    id: RecordId,
    edges: u32,
}

impl Linker {
    #[inline]
    fn access(&mut self, domain: &mut Domain, access: AccessId) {
        let (carrier, slot) = (access.carrier(), access.slot());
        let rect = slot.rect();
        let core = slot.array();
        let maps = &mut domain.maps[core.map_index()];
        let (head, generation, writes) = (&slot.head, carrier.generation(), slot.writes());
        if rect.is_empty() {
            let entry = Entry { head, generation, rect, writes };
            maps[0].register_empty(entry);
            maps[0].sweep();
        }
        if task::record(self.id).role() == Role::Cleanup {
            maps[0].for_each_empty(|earlier| {
                self.link(earlier);
            });
        }
        core.for_each_tile(&rect, |tile, rect| {
            let entry = Entry { head, generation, rect, writes };
            maps[tile].register(entry, |earlier| self.link(earlier));
            maps[tile].sweep();
        });
        if !domain.poisoned.is_empty() && !rect.is_empty() {
            let spoilt = |p: &&Poisoned| p.map == core.map_index() && p.rect.overlaps(&rect);
            if let Some(poisoned) = domain.poisoned.iter().find(spoilt) {
                task::record(self.id).poison(&poisoned.failure);
            }
        }
    }

    /// Makes the task wait for an earlier access if that is still open.
    #[inline]
    fn link(&mut self, earlier: &Entry) -> bool {
        if !earlier.is_open() {
            return false;
        }
        let edge_id: EdgeId = task::edge(self.id, self.edges as usize);
        let edge = edge_id.edge();
        edge.successor.store(self.id.index(), Ordering::Relaxed);
        let linked =
            earlier.head.push(earlier.generation, edge_id.bits(), |next| edge.set_next(next));
        self.edges += u32::from(linked);
        linked
    }

    #[cold]
    fn over_several_domains(&mut self, count: usize) {
        let domain_at = |index| domain_of(task::access(self.id, index).slot().core());
        let mut domains: Vec<&'static Mutex<Domain>> = (0..count).map(domain_at).collect();
        domains.sort_by_key(|domain| std::ptr::from_ref(*domain));
        domains.dedup_by_key(|domain| std::ptr::from_ref(*domain));
        let mut locked: Vec<(*const Mutex<Domain>, MutexGuard<'_, Domain>)> =
            domains.iter().map(|domain| (std::ptr::from_ref(*domain), domain.lock())).collect();
        for index in 0..count {
            let access = task::access(self.id, index);
            let wanted = std::ptr::from_ref(domain_of(access.slot().core()));
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
fn domain_of(core: *const ArrayCore) -> &'static Mutex<Domain> {
    ArrayCore::of_open_access(core).domain()
}
