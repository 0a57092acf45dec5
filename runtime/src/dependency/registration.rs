//! Registration: the accesses of a new task enter the bottom maps, all in one pass (R3).
//!
//! A spawn takes the lock of the group once for all accesses of the task, so tasks of one group
//! are ordered as they are spawned; a task over arrays of several groups takes their locks in a
//! fixed order.
//!
//! Accesses of one task that conflict find each other in the maps like any others. By then earlier
//! ones are superseded, so such a task is not taken back: it is spawned with a body that closes its
//! accesses in order.

mod nested;

use std::sync::Arc;

use smallvec::SmallVec;
use talpf_primitives::{Mutex, MutexGuard};

use super::bottom_map::{BottomMap, Entry};
use super::{Clauses, Declared, Domain, Joins, OpenReduction};
use crate::data::{ArrayLabel, Mode};
use crate::error::Error;
use crate::record::{
    AccessHead, AccessId, AccessSlot, Accesses, EdgeRoom, Record, RecordId, Role, Waiter,
};

/// The result of a registration.
pub(crate) struct Registered {
    /// Number of links from earlier accesses to the task.
    pub(crate) edges: u32,
    /// The error, if accesses of the task conflict with each other.
    pub(crate) overlap: Option<Box<Error>>,
}

/// Registers the accesses of an unshared task, which has room for them, and links it to every open
/// access that conflicts with one of them. They are all of the domain `own` if there is one.
#[inline]
pub(crate) fn register<'r>(
    id: RecordId,
    task: &'static Record,
    own: Option<&Mutex<Domain>>,
    clauses: &impl Clauses<'r>,
) -> Registered {
    let mut registration = Registration {
        id,
        waiter: Waiter::new(id, false),
        task,
        free: Accesses::of(task),
        room: EdgeRoom::of(id),
        edges: 0,
        weak_edges: 0,
        unusual: None,
    };
    if let Some(own) = own {
        let mut domain = own.lock();
        clauses.for_each(|declared| {
            registration.access(clauses, &mut domain, declared);
        });
    } else {
        registration.over_several_domains(clauses);
    }
    let edges = registration.edges - registration.weak_edges;
    Registered { edges, overlap: registration.unusual.and_then(|unusual| unusual.overlap) }
}

#[inline]
fn domain_of<'r>(declared: &Declared<'r>) -> &'r Mutex<Domain> {
    declared.core().domain()
}

struct Registration {
    id: RecordId,
    /// The task at the end of edges to the access that is being registered.
    waiter: Waiter,
    task: &'static Record,
    /// Slots of the accesses that are not registered yet.
    free: Accesses,
    /// Room for links.
    room: EdgeRoom,
    edges: u32,
    /// Number of those links that the task does not wait for before it runs.
    weak_edges: u32,
    /// State that few registrations need, boxed so that the others need not set it up.
    unusual: Option<Box<Unusual>>,
}

/// The state of a registration that has to do more than link the task.
#[derive(Default)]
struct Unusual {
    /// `true` if the access that is being registered conflicts with another one of its task.
    meets_itself: bool,
    /// Conflicting accesses that were passed on, inside which conflicts are still to be searched.
    behind: Vec<&'static AccessHead>,
    overlap: Option<Box<Error>>,
}

impl Registration {
    #[inline]
    fn access(&mut self, clauses: &dyn Clauses<'_>, domain: &mut Domain, declared: &Declared<'_>) {
        let Some(access) = self.free.next() else {
            return;
        };
        let slot = access.slot();
        let generation = access.generation();
        declared.fill(slot, generation);
        let new = Entry { head: &slot.head, generation, task: self.id, rect: declared.rect() };
        if !declared.mode().is_unordered()
            && let Some(tile) = declared.whole_tile()
            && let Some(map) = domain.plain_map(declared.core().map_index(), tile)
        {
            map.register_whole(new, declared.mode(), |earlier| self.link(earlier));
        } else {
            self.any_access(clauses, domain, declared, new);
        }
        if self.unusual.is_some() {
            self.link_behind(domain, declared);
            self.note_overlap(slot);
        }
    }

    /// Registers an access that does not just read or write a whole tile.
    #[inline(never)]
    fn any_access(
        &mut self,
        clauses: &dyn Clauses<'_>,
        domain: &mut Domain,
        declared: &Declared<'_>,
        new: Entry,
    ) {
        let (map, rect, mode) = (declared.core().map_index(), new.rect, declared.mode());
        if mode == Mode::Commutative {
            self.task.set_needs_tile_locks();
        }
        if declared.is_weak() || declared.lender().is_some() {
            return self.nested_access(clauses, domain, declared, new);
        }
        let maps = domain.maps(map);
        if self.task.role() == Role::Cleanup {
            // A task that frees an array waits for the accesses that touch no element, too.
            maps[0].for_each_empty(|earlier| {
                self.link(earlier);
            });
        }
        if mode == Mode::Reduction && !rect.is_empty() {
            let joins = clauses.joins(self.nth());
            let mut joined = None;
            declared.core().tiles().for_each(&rect, |tile, rect| {
                let new = Entry { rect, ..new };
                self.reduction(&mut maps[tile], joins, &mut joined, declared, new);
            });
        } else if rect.is_empty() {
            maps[0].register_empty(new);
        } else if let Some(tile) = declared.core().tiles().single(&rect) {
            maps[tile].register(new, mode, |earlier| self.link(earlier));
        } else {
            declared.core().tiles().for_each(&rect, |tile, rect| {
                maps[tile].register(Entry { rect, ..new }, mode, |earlier| self.link(earlier));
            });
        }
        if let Some(failure) = domain.poisoned_by(map, &rect) {
            self.task.poison(failure);
        }
    }

    /// Returns the number of the access that is being registered.
    fn nth(&self) -> usize {
        self.task.access_count() - self.free.len() - 1
    }

    /// Joins a reduction in the map of a tile, the same one as in the tiles before.
    #[cold]
    fn reduction(
        &mut self,
        map: &mut BottomMap,
        joins: Option<&dyn Joins>,
        joined: &mut Option<Arc<OpenReduction>>,
        declared: &Declared<'_>,
        new: Entry,
    ) {
        if joined.is_none() {
            let open = map.open_reduction(&declared.rect());
            *joined = joins.map(|joins| joins.join(open.as_ref(), declared));
        }
        if let Some(reduction) = joined {
            map.register_reduction(new, reduction, |earlier| self.link(earlier));
        }
    }

    /// Makes the task wait for an earlier access. Returns `true` if that is still open.
    #[inline]
    fn link(&mut self, earlier: &Entry) -> bool {
        earlier.is_open() && self.push_edge(earlier)
    }

    fn push_edge(&mut self, earlier: &Entry) -> bool {
        if earlier.task == self.id {
            self.unusual().meets_itself = true;
            return true;
        }
        let id = self.room.place(self.edges as usize);
        let edge = id.edge();
        edge.set_waiter(self.waiter);
        let weak = self.waiter.is_weak();
        if weak {
            self.task.open.add();
        }
        let set_next = |next| edge.set_next(next);
        if earlier.head.push(earlier.generation, id.bits(), set_next) {
            self.edges += 1;
            self.weak_edges += u32::from(weak);
            return true;
        }
        if weak {
            self.task.open.take(1);
        }
        let passed_on = earlier.is_passed_on();
        if passed_on {
            earlier.note_in(&mut self.unusual().behind);
        }
        passed_on
    }

    #[cold]
    fn unusual(&mut self) -> &mut Unusual {
        self.unusual.get_or_insert_default()
    }

    /// Describes the conflict of an access with another one of its task, if it has met any.
    #[cold]
    fn note_overlap(&mut self, second: &AccessSlot) {
        if self.unusual().meets_itself && self.unusual().overlap.is_none() {
            self.unusual().overlap = Some(Box::new(self.describe_overlap(second)));
        }
    }

    fn describe_overlap(&self, second: &AccessSlot) -> Error {
        let first =
            Accesses::of(self.task).map(AccessId::slot).find(|first| first.conflicts(second));
        let first = first.unwrap_or(second);
        Error::OverlappingAccesses {
            label: self.task.label().text().to_owned(),
            array: ArrayLabel::at(second.array().addr()).unwrap_or_else(|| ArrayLabel::of_gone(0)),
            first: first.rect(),
            first_mode: first.mode(),
            second: second.rect(),
            second_mode: second.mode(),
        }
    }

    #[cold]
    fn over_several_domains(&mut self, clauses: &dyn Clauses<'_>) {
        let mut domains: SmallVec<[&Mutex<Domain>; 8]> = SmallVec::new();
        clauses.visit(&mut |declared| domains.push(domain_of(declared)));
        domains.sort_by_key(|domain| std::ptr::from_ref(*domain));
        domains.dedup_by_key(|domain| std::ptr::from_ref(*domain));
        let mut locked: SmallVec<[MutexGuard<'_, Domain>; 8]> =
            domains.iter().map(|domain| domain.lock()).collect();
        clauses.visit(&mut |declared| {
            let wanted = std::ptr::from_ref(domain_of(declared));
            let at = domains.partition_point(|domain| std::ptr::from_ref(*domain) < wanted);
            self.access(clauses, &mut locked[at], declared);
        });
    }
}
