//! Calls of code that belongs to the program, outside the bodies of tasks.
//!
//! Wakers, closures, operators, and the drops of values of the program may panic, spawn tasks, or
//! poll a future on the spot. So each is called with no lock held, and a panic is caught there: it
//! becomes the failure of the task that the call was for or, if there is no such task, of a group.

use std::task::Waker;

use talpf_primitives::assert_nothing_held;

use crate::error::Failure;
use crate::group::GroupInner;
use crate::scheduler::Shared;
use crate::task::catch_panic;

/// Calls `work` of the program, which reports name `what`.
///
/// **Errors**: the text of a panic.
#[inline]
pub(crate) fn call<R>(what: &'static str, work: impl FnOnce() -> R) -> Result<R, String> {
    assert_nothing_held(what);
    catch_panic(work)
}

impl GroupInner {
    /// Calls `work`, for which no task can fail. If it panics the group fails, and the result is
    /// `None`.
    #[inline]
    pub(crate) fn call_back<R>(&self, what: &'static str, work: impl FnOnce() -> R) -> Option<R> {
        call(what, work).map_err(|reason| self.note_panic(what, &reason)).ok()
    }

    /// Calls a waker of a wait for the group.
    pub(crate) fn wake(&self, waker: Waker) {
        self.call_back("a waker", || waker.wake());
    }

    /// Notes a panic for the waits for the group.
    #[cold]
    pub(crate) fn note_panic(&self, what: &str, reason: &str) {
        let reason = format!("{what} panicked: {reason}");
        self.keep_failure(Failure::outside_tasks(self.name(), reason).into());
    }
}

impl Shared {
    /// Calls `work`, which belongs to no group. If it panics the first group fails, and the result
    /// is `None`.
    #[inline]
    pub(crate) fn call_back<R>(&self, what: &'static str, work: impl FnOnce() -> R) -> Option<R> {
        call(what, work).map_err(|reason| self.note_panic(what, &reason)).ok()
    }

    /// Notes a panic for the waits for the first group and for the shutdown.
    #[cold]
    pub(crate) fn note_panic(&self, what: &str, reason: &str) {
        // After the shutdown there is no group, and nothing waits.
        self.groups().first().into_iter().for_each(|first| first.note_panic(what, reason));
    }
}
