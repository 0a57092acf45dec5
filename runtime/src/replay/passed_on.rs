//! Accesses that replayed tasks have passed on to children.
//!
//! The tasks that the edges of such an access lead to were found before there were children: so none
//! waits for accesses inside it, and it closes when the task is complete.
#![allow(unsafe_code, reason = "says which accesses are closed")]

use std::sync::Arc;

use super::replayed_task::close_late;
use crate::dependency::{OpenAccess, forget_lending};
use crate::record::record;
use crate::task::resolve_access;

/// Passes an access of a replayed task on, inside which others are open.
///
/// # Safety
/// The access is open and the caller's to close, which it does once, with its unit of the task's
/// completion.
pub(crate) unsafe fn pass_on(access: OpenAccess) {
    // The array may be freed before the task is complete.
    let arrays = Arc::clone(access.array().arrays());
    record(access.task()).at_completion(move || {
        let owner = record(access.task());
        forget_lending(&arrays, access).inspect(|failure| owner.share_failure(failure));
        // SAFETY: the task is complete except for this, and each access that it has passed on has
        // one action.
        unsafe { close_late(owner, access.number(owner)) };
    });
    // SAFETY: the unit of the access, which the caller gives up.
    unsafe { resolve_access(access.task()) };
}
