//! How many tasks of a group were spawned and are complete, and who waits for that.
//!
//! Both are counted apart and for every worker apart, so that spawner and workers share no line; a
//! wait adds them up, completions first: if they are as many as the spawns read afterwards, there
//! was an instant at which every task was complete.
//!
//! A worker counts a completion with a plain store and looks for waiters at once, which misses one
//! that registers in the same nanoseconds. So it looks once more behind a fence before it goes on
//! to anything but the next task of the group ([`GroupInner::settle`]): as long as it runs those,
//! the group is not complete.

use std::sync::Arc;
use std::task::Waker;

use super::GroupInner;
use crate::error::Error;
use crate::scheduler;
use crate::sync::{AtomicU64, Ordering, fence};
use crate::task::{self, Role};

#[derive(Default)]
pub(super) struct Counts {
    members: Count,
    /// Mains and services.
    others: Count,
}

#[derive(Default)]
pub(super) struct Count {
    spawned: AtomicU64,
    completed: AtomicU64,
}

impl Counts {
    #[inline]
    fn of(&self, role: Role) -> &Count {
        match role {
            Role::Member | Role::Cleanup | Role::Replayed => &self.members,
            Role::Main | Role::Service => &self.others,
        }
    }
}

/// Counts as a task that is not complete.
pub(super) struct HeldOpen(Arc<GroupInner>);

impl Drop for HeldOpen {
    fn drop(&mut self) {
        self.0.count_completion_outside(Role::Cleanup);
    }
}

impl GroupInner {
    /// Counts a task before it is spawned. The parent of a child is not complete.
    ///
    /// **Errors**: the runtime shuts down, and the spawn is not that of a task which is not complete.
    /// **Ordering**: a spawn inside a task is seen together with the completion of that. Of any other
    /// either the shutdown sees the count, or this thread the shutdown.
    #[inline]
    pub(crate) fn count_spawn(&self, role: Role, is_child: bool) -> Result<(), Error> {
        match scheduler::worker_index(&self.shared) {
            Some(worker) if task::current().is_some() => {
                let spawned = &self.counts[worker].of(role).spawned;
                spawned.store(spawned.load(Ordering::Relaxed) + 1, Ordering::Release);
                Ok(())
            }
            _ => self.count_spawn_outside(role, is_child),
        }
    }

    #[cold]
    fn count_spawn_outside(&self, role: Role, is_child: bool) -> Result<(), Error> {
        // Who spawns a cleanup keeps the shutdown from ending: see `GroupInner::retire`.
        let inside =
            || is_child || role == Role::Cleanup || scheduler::is_for_task_of(&self.shared);
        // Workers may have ended without a task that hangs.
        let refused = || self.shared.is_closing() && (self.shared.stops() || !inside());
        // Before it is counted, too: counts that come and go would keep the shutdown awake.
        if refused() {
            return Err(Error::ShutDown);
        }
        self.outside(role).spawned.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if refused() {
            self.count_completion_outside(role);
            return Err(Error::ShutDown);
        }
        Ok(())
    }

    /// Keeps a shutdown from ending until what is returned drops, if it does not end before.
    pub(super) fn hold_open(self: &Arc<Self>) -> HeldOpen {
        self.outside(Role::Cleanup).spawned.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        HeldOpen(Arc::clone(self))
    }

    /// The count of all threads but the workers.
    fn outside(&self, role: Role) -> &Count {
        self.counts[self.counts.len() - 1].of(role)
    }

    /// Counts a completion on a worker of this runtime, which has to call
    /// [`GroupInner::settle`] before it turns to anything but tasks of this group.
    #[inline]
    pub(crate) fn count_completion(&self, role: Role, worker: usize) {
        let completed = &self.counts[worker].of(role).completed;
        completed.store(completed.load(Ordering::Relaxed) + 1, Ordering::Release);
        if !self.waiters.seem_empty() && self.is_awaited() {
            self.settle();
        }
    }

    /// Counts a completion anywhere else.
    #[cold]
    pub(crate) fn count_completion_outside(&self, role: Role) {
        self.outside(role).completed.fetch_add(1, Ordering::SeqCst);
        self.settle();
    }

    /// Wakes who waits for completions that this thread has counted.
    ///
    /// **Ordering**: either this sees the waiter or the waiter sees the completions.
    pub(crate) fn settle(&self) {
        fence(Ordering::SeqCst);
        if !self.waiters.is_empty() {
            self.wake_waiters();
        }
    }

    #[cold]
    fn wake_waiters(&self) {
        // Mains and services count here too: whoever waits for less looks again.
        if self.is_awaited() {
            // Before they are taken out: whoever comes after that sets it anew.
            self.awaited.swap(0, Ordering::AcqRel);
            self.wake_all();
        }
    }

    /// Whether anybody waits for the group.
    pub(crate) fn has_waiters(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// Wakes everybody who waits for the group: it is quiet, or it hangs.
    pub(crate) fn wake_all(&self) {
        let waiters = self.waiters.take();
        // The task that this thread runs may be complete.
        task::outside_tasks(None, || waiters.into_iter().for_each(|waiter| self.wake(waiter)));
    }

    fn sum(&self, count: impl Fn(&Counts) -> u64) -> u64 {
        self.counts.iter().map(|counts| count(counts)).sum()
    }

    fn members_completed(&self) -> u64 {
        self.sum(|counts| counts.members.completed.load(Ordering::SeqCst))
    }

    fn members_spawned(&self) -> u64 {
        self.sum(|counts| counts.members.spawned.load(Ordering::SeqCst))
    }

    /// Spawned and not yet complete tasks, mains and services not counted.
    pub(crate) fn outstanding(&self) -> u64 {
        // Completions first: see the module text.
        let completed = self.members_completed();
        self.members_spawned() - completed
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.outstanding() == 0
    }

    /// Whether as few tasks are outstanding as anybody waits for.
    fn is_awaited(&self) -> bool {
        self.outstanding() <= self.awaited.load(Ordering::Relaxed)
    }

    /// Tasks that are complete, mains and services too.
    pub(crate) fn completed(&self) -> u64 {
        let others = self.sum(|counts| counts.others.completed.load(Ordering::SeqCst));
        others + self.members_completed()
    }

    /// Tasks that were spawned, mains and services too.
    pub(crate) fn spawned(&self) -> u64 {
        let others = self.sum(|counts| counts.others.spawned.load(Ordering::SeqCst));
        others + self.members_spawned()
    }

    pub(crate) fn wake_at_completion(&self, waker: &Waker) {
        self.wake_when_left(waker, 0);
    }

    /// Wakes at a completion that leaves `left` tasks outstanding or fewer, and at others perhaps.
    pub(super) fn wake_when_left(&self, waker: &Waker, left: u64) {
        self.waiters.add(waker);
        self.awaited.fetch_max(left, Ordering::AcqRel);
        // Between this and the caller's look at the counts: see `settle`.
        fence(Ordering::SeqCst);
    }
}
