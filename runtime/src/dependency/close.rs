//! Closing of accesses: the tasks behind them may become ready.
#![allow(unsafe_code, reason = "says which accesses are closed, and follows their edges")]

use std::sync::Arc;

use super::locking::release_tile_locks;
use super::{OpenAccess, ReadySink};
use crate::data::Mode;
use crate::error::Failure;
use crate::record::{AccessSlot, EdgeId, Record, RecordId, Waiter, record};

/// Closes an access of a task that is not replayed: its region is free, the tasks that waited for
/// it may become ready, and its own task may complete.
///
/// # Safety
/// The access is open and the caller's to close, which it does once: neither it nor a copy is used
/// afterwards, and nobody uses the region by it. It is of the task `owning`.
#[inline]
pub(crate) unsafe fn close<S: ReadySink>(access: OpenAccess, owning: &'static Record) {
    if !owning.has_failed() && access.slot().mode() != Mode::Commutative {
        // SAFETY: by the contract of this function.
        unsafe { close_plain::<S>(access, None) };
    } else {
        // SAFETY: by the contract of this function.
        unsafe { close_cold::<S>(access, owning) };
    }
}

/// Closes an access of a failed task, or one that holds tile locks.
///
/// # Safety
/// As for [`close`].
#[cold]
unsafe fn close_cold<S: ReadySink>(access: OpenAccess, owning: &'static Record) {
    let slot = access.slot();
    // SAFETY: by the contract of this function.
    let failure = unsafe { poisoned_by(slot, owning) };
    if let Some(failure) = &failure {
        poison(access, failure);
    }
    if slot.mode() == Mode::Commutative {
        // While the access is open, since that keeps the array.
        release_tile_locks::<S>(access);
    }
    // SAFETY: by the contract of this function.
    unsafe { close_plain::<S>(access, failure.as_ref()) };
}

/// Closes an access whose tile locks are released and whose failure is recorded.
///
/// # Safety
/// As for [`close`].
#[inline]
pub(super) unsafe fn close_plain<S: ReadySink>(access: OpenAccess, failure: Option<&Arc<Failure>>) {
    let owner = access.task();
    if let Some(first) = access.slot().head.close(access.generation()) {
        // SAFETY: closing the access has taken its list.
        unsafe { follow_all::<S>(first, owner, failure) };
    }
    // SAFETY: the unit of the access, which has closed.
    unsafe { S::resolve_access(owner) };
}

/// Follows the edges of a closed access of the task `by`. Not inlined, since most have none.
///
/// # Safety
/// `first` begins the list that the access had, which nobody else has.
#[inline(never)]
unsafe fn follow_all<S: ReadySink>(first: u32, by: RecordId, failure: Option<&Arc<Failure>>) {
    let mut next = Some(first);
    while let Some(bits) = next {
        // SAFETY: by the contract of this function.
        let edge = unsafe { EdgeId::from_bits(bits) }.edge();
        // Read first: once satisfied, the successor may run and its record be reused.
        next = edge.next();
        // SAFETY: by the contract of this function.
        unsafe { follow::<S>(edge.waiter(), by, failure) };
    }
}

/// Follows an edge from the task `by`. With a failure, the waiting task is poisoned.
///
/// # Safety
/// The edge was linked and counted for the waiter, was taken from its access, and is followed once.
#[inline]
pub(super) unsafe fn follow<S: ReadySink>(
    waiter: Waiter,
    by: RecordId,
    failure: Option<&Arc<Failure>>,
) {
    if waiter.is_weak() {
        // SAFETY: an edge of a weak access is a unit of its task's completion.
        return unsafe { follow_weak::<S>(waiter) };
    }
    let pending = record(waiter.task());
    if let Some(failure) = failure {
        pending.poison(failure);
    }
    if pending.pending.take(1) {
        S::ready(waiter.task(), by);
    }
}

/// # Safety
/// As for [`ReadySink::resolve`], of one unit.
#[cold]
unsafe fn follow_weak<S: ReadySink>(waiter: Waiter) {
    // SAFETY: by the contract of this function.
    unsafe { S::resolve(waiter.task(), 1) };
}

/// Returns the failure by which the region of an access is poisoned, if its task has failed.
///
/// # Safety
/// The access, of `task`, is open.
#[inline]
pub(super) unsafe fn poisoned_by(slot: &AccessSlot, task: &Record) -> Option<Arc<Failure>> {
    // SAFETY: by the contract of this function.
    let failure = if slot.writes() { unsafe { task.failure() } } else { None };
    failure.filter(|_| !slot.rect().is_empty())
}

/// Records that a failed task has poisoned a region. Called before the access closes, so a task
/// spawned later either finds this record or still finds the access open.
#[cold]
pub(super) fn poison(access: OpenAccess, failure: &Arc<Failure>) {
    let array = access.array();
    array.note_poisoned();
    array.domain().lock().poison(*access, array.map_index(), failure);
}
