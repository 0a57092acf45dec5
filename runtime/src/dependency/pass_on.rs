//! Lending of an access whose guard is given up, and passing it on when the lending ends.
#![allow(unsafe_code, reason = "says which accesses are released")]

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::bottom_map::Entry;
use super::close::{close_plain, follow, poison, poisoned_by};
use super::lending::Lending;
use super::{Arrays, Domain, OpenAccess, ReadySink};
use crate::error::Failure;
use crate::record::{AccessHead, AccessId, Accesses, EdgeId, RecordId, Waiter, more_edges, record};

/// Lends an access to children. Its guard is forgotten.
pub(crate) fn lend(access: OpenAccess) {
    let slot = access.slot();
    let mut domain = access.array().domain().lock();
    domain.lendings.add(&slot.head, Lending::of(slot.rect()));
}

/// Ends the lending of an access inside which no access is open and nothing is poisoned. Returns
/// `false` otherwise.
pub(crate) fn ends_lending(access: OpenAccess) -> bool {
    let head = &access.slot().head;
    let mut domain = access.array().domain().lock();
    let ends = domain.lendings.is_done_with(head);
    if ends {
        domain.lendings.remove(head);
    }
    ends
}

/// Forgets the lending of an access of `arrays` that was passed on. Returns the failure by which
/// some of it is poisoned.
pub(crate) fn forget_lending(arrays: &Arrays, access: OpenAccess) -> Option<Arc<Failure>> {
    let slot = access.slot();
    let lending = arrays.domain.lock().lendings.remove(&slot.head)?;
    lending.first_poisoned(&slot.rect()).cloned()
}

/// Ends the lending of an access of a task that is not replayed: it closes if no access inside it is
/// open and nothing is poisoned, and is passed on otherwise.
///
/// # Safety
/// As for [`close`](super::close()).
pub(crate) unsafe fn pass_on<S: ReadySink>(access: OpenAccess) {
    let (slot, owner) = (access.slot(), access.task());
    // SAFETY: the access is open.
    let failure = unsafe { poisoned_by(slot, record(owner)) };
    if let Some(failure) = &failure {
        poison(access, failure);
    }
    let arrays = Arc::clone(access.array().arrays());
    let mut domain = arrays.domain.lock();
    if domain.lendings.is_done_with(&slot.head) {
        domain.lendings.remove(&slot.head);
        drop(domain);
        // SAFETY: by the contract of this function.
        return unsafe { close_plain::<S>(access, failure.as_ref()) };
    }
    // The array may be freed before the task is complete.
    let kept = Arc::clone(&arrays);
    record(owner).at_completion(move || close_passed_on(&kept, access));
    let mut waiters = Vec::new();
    let mut linked = HashSet::new();
    let mut next = slot.head.pass_on(access.generation());
    while let Some(bits) = next {
        // SAFETY: the lists of a head hold edges only.
        let edge = unsafe { EdgeId::from_bits(bits) };
        next = edge.edge().next();
        let waiter = edge.edge().waiter();
        // Of several edges to one task, from several tiles, the first stands for all.
        if linked.insert(waiter) {
            Links::new(waiter, edge).put(&mut domain, access);
        }
        waiters.push(waiter);
    }
    // Following the edges takes locks of its own.
    drop(domain);
    // SAFETY: the edges were taken from the access; those linked instead are counted by themselves.
    waiters.into_iter().for_each(|waiter| unsafe { follow::<S>(waiter, owner, failure.as_ref()) });
    // SAFETY: the unit of the access, which the caller gives up.
    unsafe { S::resolve_access(owner) };
}

/// Closes an access, of `arrays`, of a task that is complete: no access inside it is open.
fn close_passed_on(arrays: &Arrays, access: OpenAccess) {
    let head = &access.slot().head;
    let mut domain = arrays.domain.lock();
    domain.lendings.remove(head);
    head.close(access.generation());
}

/// New edges to a task that has waited for an access which is passed on. The unit of the old edge
/// keeps the task pending.
struct Links {
    waiter: Waiter,
    /// An unused edge of the waiting task.
    spare: Option<EdgeId>,
    /// Unused edges of a record that was added to the task.
    fresh: Option<(RecordId, Range<usize>)>,
    /// Accesses that were passed on, inside which conflicts are still to be searched.
    behind: Vec<&'static AccessHead>,
    /// Accesses that the task waits for, by address: they may be in several tiles.
    linked: HashSet<usize>,
}

impl Links {
    /// Creates links for a waiter, to which the edge `old` led.
    fn new(waiter: Waiter, old: EdgeId) -> Self {
        let (behind, linked) = (Vec::new(), HashSet::new());
        Links { waiter, spare: Some(old), fresh: None, behind, linked }
    }

    /// Links the task behind every access inside `passed_on` that conflicts with it, and poisons it
    /// if some of that is poisoned.
    fn put(&mut self, domain: &mut Domain, passed_on: OpenAccess) {
        let weak = self.waiter.is_weak();
        let waits = |access: &AccessId| {
            access.slot().is_weak() == weak && access.slot().conflicts(passed_on.slot())
        };
        for access in Accesses::of(record(self.waiter.task())).filter(waits) {
            let slot = access.slot();
            // Conflicting accesses are of one array.
            let (tiles, rect, mode) = (passed_on.array().tiles(), slot.rect(), slot.mode());
            let poisoned = domain.lendings.of(*passed_on).first_poisoned(&rect).filter(|_| !weak);
            poisoned.inspect(|failure| record(self.waiter.task()).poison(failure));
            self.behind.push(&passed_on.slot().head);
            let mut next = 0;
            while let Some(&behind) = self.behind.get(next) {
                next += 1;
                let link = |earlier: &Entry| self.link(earlier);
                domain.lendings.for_each_conflict(behind, tiles, &rect, mode, link);
            }
            self.behind.clear();
        }
    }

    fn link(&mut self, earlier: &Entry) {
        let address = std::ptr::from_ref(earlier.head).addr();
        if self.linked.contains(&address) {
            return;
        }
        let id = self.spare.take().unwrap_or_else(|| self.fresh_edge());
        let edge = id.edge();
        edge.set_waiter(self.waiter);
        let task = record(self.waiter.task());
        let units = if self.waiter.is_weak() { &task.open } else { &task.pending };
        units.add();
        let set_next = |next| edge.set_next(next);
        if !earlier.head.push(earlier.generation, id.bits(), set_next) {
            units.take(1);
            self.spare = Some(id);
            if earlier.is_passed_on() {
                earlier.note_in(&mut self.behind);
            }
            return;
        }
        self.linked.insert(address);
    }

    fn fresh_edge(&mut self) -> EdgeId {
        if let Some((carrier, edges)) = &mut self.fresh
            && let Some(index) = edges.next()
        {
            return EdgeId::new(*carrier, index);
        }
        let (carrier, mut edges) = more_edges(self.waiter.task());
        let first = edges.next().unwrap_or_default();
        self.fresh = Some((carrier, edges));
        EdgeId::new(carrier, first)
    }
}
