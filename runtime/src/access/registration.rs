//! Registration: the accesses of a new task enter the bottom maps, all in one pass (R3).
//!
//! A spawn takes the lock of the group once for all accesses of the task, so tasks of one group
//! are ordered as they are spawned; a task over arrays of several groups takes their locks in a
//! fixed order.
//!
//! Accesses of one task that conflict find each other in the maps like any others. By then earlier
//! ones are superseded, so such a task is not taken back: it is spawned with a body that closes
//! its accesses in their turn.

use smallvec::SmallVec;

use super::bottom_map::Entry;
use super::{AccessId, AccessSlot, Declared, Domain, EdgeId};
use crate::data::Mode;
use crate::error::Error;
use crate::sync::{Mutex, MutexGuard, Ordering};
use crate::task::{Accesses, Clauses, Record, RecordId, Role, edge};

/// What became of a registration.
pub(crate) struct Registered {
    /// Links from earlier accesses to the task.
    pub(crate) edges: u32,
    /// The accesses of the task that conflict with each other.
    pub(crate) overlap: Option<Error>,
}

/// Registers the accesses of an unshared task, which has room for them, and links it to every open
/// access that conflicts with one of them.
#[inline]
pub(crate) fn register<'r>(
    id: RecordId,
    task: &'static Record,
    clauses: &impl Clauses<'r>,
) -> Registered {
    let mut registration =
        Registration { id, task, free: Accesses::of(task), edges: 0, meets_itself: false };
    let mut overlap = None;
    let mut first = None;
    let mut only = true;
    clauses.for_each(|declared| {
        let domain = domain_of(declared);
        only &= std::ptr::eq(*first.get_or_insert(domain), domain);
    });
    if let Some(first) = first
        && only
    {
        let mut domain = first.lock();
        clauses.for_each(|declared| registration.access(&mut domain, declared, &mut overlap));
    } else {
        registration.over_several_domains(clauses, &mut overlap);
    }
    Registered { edges: registration.edges, overlap }
}

#[inline]
fn domain_of<'r>(declared: &Declared<'r>) -> &'r Mutex<Domain> {
    declared.core().domain()
}

struct Registration {
    id: RecordId,
    task: &'static Record,
    /// The places of the accesses that are not registered yet.
    free: Accesses,
    edges: u32,
    meets_itself: bool,
}

impl Registration {
    fn access(
        &mut self,
        domain: &mut Domain,
        declared: &Declared<'_>,
        overlap: &mut Option<Error>,
    ) {
        let Some(access) = self.free.next() else {
            return;
        };
        let slot = access.slot();
        let generation = access.generation();
        slot.fill(generation, declared);
        let map = declared.core().map_index();
        let rect = declared.rect();
        let mode = declared.mode();
        if mode == Mode::Commutative {
            self.task.set_takes_turns();
        }
        let new = Entry { head: &slot.head, generation, task: self.id, rect };
        let maps = domain.maps(map);
        if self.task.role() == Role::Cleanup {
            // A task that frees an array waits for the accesses that touch no element, too.
            maps[0].for_each_empty(|earlier| {
                self.link(earlier);
            });
        }
        if let Some(tile) = declared.whole_tile() {
            maps[tile].register_whole(new, mode, |earlier| self.link(earlier));
        } else if rect.is_empty() {
            maps[0].register_empty(new);
        } else if let Some(tile) = declared.core().single_tile(&rect) {
            maps[tile].register(new, mode, |earlier| self.link(earlier));
        } else {
            declared.core().for_each_tile(&rect, |tile, rect| {
                maps[tile].register(Entry { rect, ..new }, mode, |earlier| self.link(earlier));
            });
        }
        if let Some(failure) = domain.spoilt(map, &rect) {
            self.task.poison(failure);
        }
        if self.meets_itself {
            overlap.get_or_insert_with(|| self.describe_overlap(slot));
        }
    }

    /// Makes the task wait for an earlier access. Answers whether that is still open.
    #[inline]
    fn link(&mut self, earlier: &Entry) -> bool {
        earlier.is_open() && self.push_edge(earlier)
    }

    fn push_edge(&mut self, earlier: &Entry) -> bool {
        if earlier.task == self.id {
            self.meets_itself = true;
            return true;
        }
        let edge_id: EdgeId = edge(self.id, self.edges as usize);
        let edge = edge_id.edge();
        edge.successor.store(self.id.index(), Ordering::Relaxed);
        let linked =
            earlier.head.push(earlier.generation, edge_id.bits(), |next| edge.set_next(next));
        self.edges += u32::from(linked);
        linked
    }

    #[cold]
    fn describe_overlap(&self, second: &AccessSlot) -> Error {
        let first =
            Accesses::of(self.task).map(AccessId::slot).find(|first| first.conflicts(second));
        let first = first.unwrap_or(second);
        Error::OverlappingAccesses {
            label: self.task.label().text().to_owned(),
            first: first.rect(),
            first_mode: first.mode(),
            second: second.rect(),
            second_mode: second.mode(),
        }
    }

    #[cold]
    fn over_several_domains<'r>(
        &mut self,
        clauses: &impl Clauses<'r>,
        overlap: &mut Option<Error>,
    ) {
        let mut domains: SmallVec<[&Mutex<Domain>; 8]> = SmallVec::new();
        clauses.for_each(|declared| domains.push(domain_of(declared)));
        domains.sort_by_key(|domain| std::ptr::from_ref(*domain));
        domains.dedup_by_key(|domain| std::ptr::from_ref(*domain));
        let mut locked: SmallVec<[MutexGuard<'_, Domain>; 8]> =
            domains.iter().map(|domain| domain.lock()).collect();
        clauses.for_each(|declared| {
            let wanted = std::ptr::from_ref(domain_of(declared));
            let at = domains.partition_point(|domain| std::ptr::from_ref(*domain) < wanted);
            self.access(&mut locked[at], declared, overlap);
        });
    }
}
