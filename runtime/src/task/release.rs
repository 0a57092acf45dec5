//! Release of accesses, as their guards and lendings drop: of replayed tasks by the replay, of all
//! others by their dependencies.
#![allow(unsafe_code, reason = "says which accesses are released")]

use super::run::Steps;
use crate::dependency::{self, OpenAccess};
use crate::record::{Role, record};
use crate::replay;

/// Closes an access: its region is free, the tasks that waited for it may become ready, and its
/// own task may complete. Called when the guard of the access drops.
///
/// # Safety
/// The access is open and the caller's to close, which it does once: neither it nor a copy is used
/// afterwards, and nobody uses the region by it.
#[inline]
pub(crate) unsafe fn release(access: OpenAccess) {
    let (carrier, index) = access.place();
    // SAFETY: by the contract of this function.
    if !unsafe { replay::close_here(carrier, index) } {
        // SAFETY: the same; it was not closed here.
        unsafe { release_slow(access) };
    }
}

/// Closes an access that is not of the replayed task whose body runs on this thread. Not inlined,
/// as the other path, so that a guard that drops saves no registers for either.
///
/// # Safety
/// As for [`release`].
#[inline(never)]
unsafe fn release_slow(access: OpenAccess) {
    let owning = record(access.task());
    if owning.role() == Role::Replayed {
        // SAFETY: by the contract of this function.
        unsafe { replay::close(owning, access.number(owning)) };
    } else {
        // SAFETY: by the contract of this function.
        unsafe { dependency::close::<Steps>(access, owning) };
    }
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
    if record(access.task()).role() != Role::Replayed {
        // SAFETY: by the contract of this function.
        return unsafe { dependency::pass_on::<Steps>(access) };
    }
    if dependency::ends_lending(access) {
        // SAFETY: by the contract of this function.
        return unsafe { release(access) };
    }
    // SAFETY: by the contract of this function.
    unsafe { replay::pass_on(access) };
}
