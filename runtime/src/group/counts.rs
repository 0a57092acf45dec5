//! The task counts of a group, as its runtime uses them.

use std::sync::Arc;
use std::task::Waker;

use talpf_primitives::{Ordering, fence};

use super::GroupInner;
use super::tally::Until;
use crate::error::Error;
use crate::record::{Role, running};
use crate::scheduler;

/// Hold of a group, which is not quiet meanwhile.
pub(crate) struct HeldOpen(Arc<GroupInner>);

impl Drop for HeldOpen {
    fn drop(&mut self) {
        self.0.tally.end_hold();
        self.0.settle();
    }
}

impl GroupInner {
    /// Counts a task before it is spawned. The parent of a child is not complete.
    ///
    /// **Errors**: the runtime shuts down, and the spawner is no task that is not complete.
    /// **Ordering**: a spawn inside a task is seen together with the completion of that task. For
    /// any other spawn, either the shutdown sees the count, or this thread sees the shutdown.
    #[inline]
    pub(crate) fn count_spawn(&self, role: Role, is_child: bool) -> Result<(), Error> {
        match scheduler::worker_index(&self.shared) {
            Some(worker) if running::current().is_some() => {
                self.tally.count_spawn(role, worker);
                Ok(())
            }
            _ => self.count_spawn_outside(role, is_child),
        }
    }

    #[cold]
    fn count_spawn_outside(&self, role: Role, is_child: bool) -> Result<(), Error> {
        // The spawner of a cleanup keeps the shutdown from ending: see `retire` in `data/owner.rs`.
        let inside =
            || is_child || role == Role::Cleanup || scheduler::is_for_task_of(&self.shared);
        // After a hang, workers may have ended before their tasks.
        let is_exempt = || !self.shared.stops() && inside();
        let count = || self.tally.count_spawn_outside(role);
        self.shared.closing.admit(is_exempt, count, || self.count_completion_outside(role))
    }

    /// Keeps a shutdown that has not ended from ending until the returned value drops.
    pub(crate) fn hold_open(self: &Arc<Self>) -> HeldOpen {
        self.tally.begin_hold();
        fence(Ordering::SeqCst);
        HeldOpen(Arc::clone(self))
    }

    /// Counts a completion on a worker of this runtime, which has to call [`GroupInner::settle`]
    /// before it runs anything but tasks of this group.
    #[inline]
    pub(crate) fn count_completion(&self, role: Role, worker: usize) {
        if self.tally.count_completion(role, worker) {
            self.settle();
        }
    }

    /// Counts a completion on any other thread.
    #[cold]
    pub(crate) fn count_completion_outside(&self, role: Role) {
        self.tally.count_completion_outside(role);
        self.settle();
    }

    /// Wakes the waiters for completions that this thread has counted.
    pub(crate) fn settle(&self) {
        self.wake_each(self.tally.settle());
    }

    /// Wakes all waiters for the group, to find that it hangs.
    pub(crate) fn wake_all(&self) {
        self.wake_each(self.tally.take_waiters());
    }

    fn wake_each(&self, waiters: Vec<Waker>) {
        if waiters.is_empty() {
            return;
        }
        // The task that this thread runs may be complete.
        running::outside_tasks(None, || waiters.into_iter().for_each(|waiter| self.wake(waiter)));
    }

    /// Calls `waker` at the completion that leaves no task outstanding, and at others perhaps.
    pub(crate) fn wake_at_completion(&self, waker: &Waker) {
        self.tally.add_waiter(waker, Until::Left(0));
    }

    /// Returns `true` if the group has waiters.
    pub(crate) fn has_waiters(&self) -> bool {
        self.tally.has_waiters()
    }

    /// Counts the spawned tasks that are not complete, without mains and services, and the holds.
    pub(crate) fn outstanding(&self) -> u64 {
        self.tally.outstanding()
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.tally.is_quiet()
    }

    /// Counts the complete tasks, mains and services too.
    pub(crate) fn completed(&self) -> u64 {
        self.tally.completed()
    }

    /// Counts the spawned tasks, mains and services too.
    pub(crate) fn spawned(&self) -> u64 {
        self.tally.spawned()
    }
}
