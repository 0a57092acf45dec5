//! Failed tasks: panics, reported errors, and the tasks that do not run because of them (R4).
//!
//! While a body unwinds, its guards drop before the panic can be described. Their release is
//! deferred until it is, so that no successor runs on poisoned data. A body that catches its own
//! panic has not failed: the deferred guards are released with the next guard that it drops, when
//! it awaits, or at its end.
#![allow(unsafe_code, reason = "follows the group pointer of the task that fails")]

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use talpf_primitives::thread_local;

use super::run;
use crate::error::{Error, Failure};
use crate::group::GroupInner;
use crate::record::{Record, RecordId, Role, record};

impl Record {
    /// Returns the failure of this task, if it has failed.
    ///
    /// # Safety
    /// The caller has a unit of the task's completion, or completes it and has not taken the
    /// failure.
    #[inline]
    pub(crate) unsafe fn failure(&self) -> Option<Arc<Failure>> {
        // SAFETY: by the contract of this function.
        unsafe { self.failure_cell().get() }
    }

    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.failure_cell().is_set()
    }

    /// Poisons this task, which has not run and does not run then.
    #[cold]
    pub(crate) fn poison(&self, upstream: &Arc<Failure>) {
        if self.role() != Role::Cleanup {
            self.set_failure(None, false, Some(Arc::clone(upstream)));
        }
    }

    /// Fails this task for `reason`.
    #[cold]
    pub(crate) fn fail(&self, reason: String) {
        self.set_failure(Some(reason), false, None);
    }

    /// Fails this task, which does not run or not to its end, because its group is cancelled.
    #[cold]
    pub(super) fn cancel(&self) {
        // SAFETY: the caller runs the task.
        let reason = unsafe { GroupInner::of_live_task(self) }.cancel_reason();
        self.set_failure(Some(reason), true, None);
    }

    fn set_failure(&self, reason: Option<String>, cancelled: bool, upstream: Option<Arc<Failure>>) {
        let label = self.label().text().to_owned();
        // SAFETY: whoever fails a task has an open access of it, an event, an edge to it, or runs
        // it.
        let group = unsafe { GroupInner::of_live_task(self) }.name().to_owned();
        let parents = std::iter::successors(self.parent(), |parent| record(*parent).parent());
        let inside = parents.map(|parent| record(parent).label().text().to_owned()).collect();
        let depth = upstream.as_ref().map_or(0, |upstream| upstream.depth + 1);
        let failure = Failure { label, inside, group, reason, cancelled, upstream, depth };
        self.share_failure(&Arc::new(failure));
    }

    /// Fails this task with the failure of another one.
    #[cold]
    pub(crate) fn share_failure(&self, failure: &Arc<Failure>) {
        self.failure_cell().set(failure);
    }

    /// Removes the failure; the caller completes the task.
    #[inline]
    pub(crate) fn take_failure(&self) -> Option<Arc<Failure>> {
        self.failure_cell().take()
    }
}

/// Fails the running task: the regions that it writes are poisoned and its successors do not run.
/// The body goes on to its end.
///
/// **Errors**: called outside a task.
pub fn fail_current_task(reason: impl Into<String>) -> Result<(), Error> {
    let task = run::current().ok_or(Error::NotInTask("fail_current_task"))?;
    record(task).fail(reason.into());
    Ok(())
}

/// Returns the failure of the task that this thread runs.
pub(super) fn of_current_task() -> Option<Arc<Failure>> {
    // SAFETY: the task that runs has a unit for its body.
    run::current().and_then(|task| unsafe { record(task).failure() })
}

// Releases deferred by the task that unwinds, and by inline tasks that run meanwhile.
thread_local! {
    static DEFERRED: RefCell<Vec<Box<dyn FnOnce()>>> = const { RefCell::new(Vec::new()) };
}

/// Returns `true` if the running task unwinds, so that its releases have to wait for its failure.
#[inline]
pub(crate) fn is_unwinding() -> bool {
    std::thread::panicking() && run::is_inside_task()
}

/// Calls `release` once the failure of the unwinding task is known.
#[cold]
pub(crate) fn defer_release(release: impl FnOnce() + 'static) {
    DEFERRED.with_borrow_mut(|deferred| deferred.push(Box::new(release)));
    run::note_deferred();
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

/// Calls `work`.
///
/// **Errors**: the text of a panic.
pub(crate) fn catch_panic<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let text = panic_text(&*payload);
        drop_quietly(payload);
        text
    })
}

/// Returns the text of a panic.
fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&'static str>().copied());
    text.unwrap_or("panicked with a value that is no text").to_owned()
}

/// Drops a value whose drop may panic when nobody can be notified. The payload of that panic may
/// panic again, and is leaked.
pub(crate) fn drop_quietly<T>(value: T) {
    std::mem::forget(catch_unwind(AssertUnwindSafe(|| drop(value))));
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
