//! Uses of regions at once, without a task, by the layers above.
//!
//! A use of a few bytes costs less than a task. It is made under the lock of the array's group, under which tasks
//! are spawned: so it comes after all tasks that were spawned before, of which none may be left that it conflicts
//! with, and before all that are spawned after.
#![allow(unsafe_code, reason = "reads elements that no task may change meanwhile")]

use std::sync::Arc;

use crate::data::{Mode, Region};
use crate::group::Group;

/// Calls `act` while the region is free: nobody else uses it so that a task of `mode`, which reads or writes,
/// would have to wait. `None` if it is not free, or not a part of an array of the group: then a task has to use it.
///
/// **Blocking**: holds the lock under which tasks of the group are spawned, so `act` is short and calls no code of
/// the program.
#[inline]
pub fn while_free<T, D, R>(
    group: &Group,
    region: &Region<'_, T, D>,
    mode: Mode,
    act: impl FnOnce() -> R,
) -> Option<R> {
    let (core, rect) = (region.core(), region.rect());
    let is_ours = Arc::ptr_eq(core.arrays(), &group.inner().arrays) && region.lender().is_none();
    if !is_ours || mode.is_unordered() || region.check().is_err() {
        return None;
    }
    let mut domain = core.domain().lock();
    domain.is_free(core, &rect, mode).then(act)
}

/// Calls `read` with each row of the region at once, if that is free as in [`while_free`].
#[inline]
pub fn read_if_free<T, D>(
    group: &Group,
    region: &Region<'_, T, D>,
    mut read: impl FnMut(&[T]),
) -> Option<()> {
    let (core, rect) = (region.core(), region.rect());
    while_free(group, region, Mode::In, || {
        for row in 0..rect.rows() {
            let first = core.first_of::<T>(&rect).wrapping_add(row * core.stride());
            // SAFETY: the region lies in its array, whose elements are of this type; no task writes to it, nor
            // begins to as long as the lock is held.
            read(unsafe { std::slice::from_raw_parts(first, rect.cols()) });
        }
    })
}
