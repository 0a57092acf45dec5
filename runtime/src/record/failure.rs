//! The failure of a task, and how one fails (R4).
#![allow(unsafe_code, reason = "reads the name of the group of a task that fails")]

use std::sync::Arc;

use super::{Record, Role, record};
use crate::error::Failure;

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
    pub(crate) fn cancel(&self, reason: String) {
        self.set_failure(Some(reason), true, None);
    }

    fn set_failure(&self, reason: Option<String>, cancelled: bool, upstream: Option<Arc<Failure>>) {
        let label = self.label().text().to_owned();
        // SAFETY: whoever fails a task has an open access of it, an event, an edge to it, or runs
        // it.
        let group = unsafe { self.live_group() }.name().to_owned();
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
