//! Lending of an access whose guard is given up, and passing it on when the lending ends.
#![allow(unsafe_code, reason = "says which accesses are released")]

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::bottom_map::Entry;
use super::lending::Lending;
use super::slot::{Waiter, close};
use super::{AccessId, Domain, EdgeId, OpenAccess, domain, release};
use crate::group::GroupInner;
use crate::record::{AccessHead, Accesses, RecordId, Role, more_edges, record};
use crate::replay;
use crate::task;

/// An access that was passed on, in a list of its task.
pub(crate) struct PassedOn {
    access: OpenAccess,
    /// Group of the array, which may be freed before the task is complete.
    group: Arc<GroupInner>,
    pub(crate) next: Option<Box<PassedOn>>,
}

impl PassedOn {
    /// Closes the access of a task that is complete, inside which no access is open. Returns the
    /// next one of the list.
    pub(crate) fn close(self) -> Option<Box<PassedOn>> {
        let (slot, owner) = (self.access.slot(), record(self.access.task()));
        let mut domain = self.group.domain.lock();
        let lending = domain.lendings.remove(&slot.head);
        if owner.role() != Role::Replayed {
            slot.head.close(self.access.generation());
            return self.next;
        }
        drop(domain);
        let poisoned = lending.as_ref().and_then(|lending| lending.first_poisoned(&slot.rect()));
        poisoned.inspect(|failure| owner.share_failure(failure));
        // SAFETY: the task is complete except for this, and each access that it has passed on is in
        // its list once.
        unsafe { replay::close_late(owner, self.access.number(owner)) };
        self.next
    }
}

/// Lends an access to children. Its guard is forgotten.
pub(crate) fn lend(access: OpenAccess) {
    let slot = access.slot();
    let mut domain = access.array().domain().lock();
    domain.lendings.add(&slot.head, Lending::of(slot.rect()));
}

/// Closes an access of a task whose body does not run.
///
/// # Safety
/// As for [`release`].
pub(crate) unsafe fn release_unheld(access: OpenAccess) {
    let close = if access.slot().is_weak() { pass_on } else { release };
    // SAFETY: by the contract of this function.
    unsafe { close(access) }
}

/// Ends the lending of an access: it closes if no access inside it is open and nothing is poisoned,
/// and is passed on otherwise.
///
/// # Safety
/// As for [`release`].
pub(crate) unsafe fn pass_on(access: OpenAccess) {
    let (slot, owner) = (access.slot(), access.task());
    if record(owner).role() == Role::Replayed {
        // SAFETY: by the contract of this function.
        return unsafe { pass_on_within_step(access) };
    }
    // SAFETY: the access is open.
    let failure = unsafe { slot.poisoned_by(record(owner)) };
    if let Some(failure) = &failure {
        domain::poison(access, failure);
    }
    let group = Arc::clone(access.array().group());
    let mut domain = group.domain.lock();
    if domain.lendings.is_done_with(&slot.head) {
        domain.lendings.remove(&slot.head);
        drop(domain);
        // SAFETY: by the contract of this function.
        return unsafe { close(access, failure.as_ref()) };
    }
    let passed_on = PassedOn { access, group: Arc::clone(&group), next: None };
    record(owner).note_passed_on(passed_on);
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
    waiters.into_iter().for_each(|waiter| unsafe { waiter.follow(failure.as_ref()) });
    // SAFETY: the unit of the access, which the caller gives up.
    unsafe { task::resolve_access(owner) };
}

/// Ends the lending of an access of a replayed task. The tasks that its edges lead to were found
/// before there were children: so none waits for accesses inside this one, and it closes when the
/// task is complete.
///
/// # Safety
/// As for [`release`].
unsafe fn pass_on_within_step(access: OpenAccess) {
    let (slot, owner) = (access.slot(), access.task());
    let group = Arc::clone(access.array().group());
    let mut domain = group.domain.lock();
    if domain.lendings.is_done_with(&slot.head) {
        domain.lendings.remove(&slot.head);
        drop(domain);
        // SAFETY: by the contract of this function.
        return unsafe { release(access) };
    }
    drop(domain);
    record(owner).note_passed_on(PassedOn { access, group, next: None });
    // SAFETY: the unit of the access, which the caller gives up.
    unsafe { task::resolve_access(owner) };
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
