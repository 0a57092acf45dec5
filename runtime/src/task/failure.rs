//! Failed tasks: panics, reported errors, and the tasks that do not run because of them (R4).
//!
//! While a body unwinds, its guards drop before the panic can be described. Their release is
//! deferred until it is, so that no successor runs on poisoned data. A body that catches its own
//! panic has not failed: the deferred guards are released with the next guard that it drops, when
//! it awaits, or at its end.
#![allow(unsafe_code, reason = "reads the failure of the running task")]

use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

use talpf_primitives::thread_local;

use crate::callback::{drop_quietly, panic_text};
use crate::error::{Error, Failure};
use crate::record::{RecordId, record, running};

/// Fails the running task: the regions that it writes are poisoned and its successors do not run.
/// The body goes on to its end.
///
/// **Errors**: called outside a task.
pub fn fail_current_task(reason: impl Into<String>) -> Result<(), Error> {
    let task = running::current().ok_or(Error::NotInTask("fail_current_task"))?;
    record(task).fail(reason.into());
    Ok(())
}

/// Returns the failure of the task that this thread runs.
pub(super) fn of_current_task() -> Option<Arc<Failure>> {
    // SAFETY: the task that runs has a unit for its body.
    running::current().and_then(|task| unsafe { record(task).failure() })
}

// Releases deferred by the task that unwinds, and by inline tasks that run meanwhile.
thread_local! {
    static DEFERRED: RefCell<Vec<Box<dyn FnOnce()>>> = const { RefCell::new(Vec::new()) };
}

/// Returns `true` if the running task unwinds, so that its releases have to wait for its failure.
#[inline]
pub(crate) fn is_unwinding() -> bool {
    std::thread::panicking() && running::innermost().is_some()
}

/// Calls `release` once the failure of the unwinding task is known.
#[cold]
pub(crate) fn defer_release(release: impl FnOnce() + 'static) {
    DEFERRED.with_borrow_mut(|deferred| deferred.push(Box::new(release)));
    running::set_deferred(true);
}

/// Performs the deferred releases, in the order of the drops. Called when no panic unwinds.
#[cold]
pub(super) fn release_deferred() {
    for release in DEFERRED.take() {
        release();
    }
}

/// Fails `task`, whose body panicked. The deferred releases come after that, and so does the drop
/// of the payload.
#[cold]
pub(super) fn panicked(task: RecordId, payload: Box<dyn Any + Send>) {
    record(task).fail(panic_text(&*payload));
    drop_quietly(payload);
}

/// Fails a task of which the caller has an open access.
#[cold]
pub(crate) fn fail(task: RecordId, reason: String) {
    record(task).fail(reason);
}

/// Returns `true` if a task of which the caller has an open access has failed.
pub(crate) fn has_failed(task: RecordId) -> bool {
    record(task).has_failed()
}
