//! Cancelling of a group by the program.

use std::sync::Arc;

use super::Group;
use super::cancellation::ACTION;
use crate::callback;
use crate::record::for_each_record;
use crate::task::{current_group, wake_suspended};

impl Group {
    /// Cancels the tasks of the group: until a wait for it ends, those that have not begun do not
    /// run, and async bodies that are suspended, or that suspend, are dropped there. Their regions
    /// are released. Bodies that run go on to their end and may check [`Group::is_cancelled`].
    /// Mains and services of the group are not cancelled; their waits report the cancellation.
    ///
    /// The regions that a dropped body would have written are poisoned: tasks of other groups that
    /// depend on them do not run and their failures name the cancelled task; all others go on. Of
    /// several reasons the first counts.
    ///
    /// **Completion**: returns at once; the next [`Group::wait`] ends with [`Error::Cancelled`](crate::Error::Cancelled)
    /// when every task is complete. **Cost**: checks every task.
    pub fn cancel(&self, reason: impl Into<String>) {
        let cancellation = &self.inner.cancellation;
        let reason = cancellation.begin(reason.into());
        for_each_record(|id, task| {
            if task.owner() == id && self.inner.is_of(task) {
                wake_suspended(id);
            }
        });
        for action in cancellation.actions() {
            if let Err(panic) = callback::call(ACTION, || action(&reason)) {
                self.inner.note_panic_of_action(&panic);
            }
        }
    }

    /// Returns `true` if the group was cancelled and no wait has ended since. For bodies that run
    /// long.
    ///
    /// **Cost**: one load.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancellation.has_begun()
    }

    /// Adds an action that each [`Group::cancel`] calls with the reason: to end operations that
    /// tasks of the group wait for, for instance. It runs on the cancelling thread. The text of its
    /// panic is added to the reason that waits report.
    pub fn on_cancel(&self, action: impl Fn(&str) + Send + Sync + 'static) {
        self.inner.cancellation.add_action(Arc::new(action));
    }
}

/// Returns `true` if the group of the running task is cancelled: see [`Group::cancel`]. Outside a
/// task, returns `false`.
pub fn is_cancelled() -> bool {
    current_group().is_some_and(|group| group.cancellation.has_begun())
}
