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

use std::task::Waker;

use super::GroupInner;
use crate::scheduler;
use crate::sync::{AtomicU64, Ordering, fence};
use crate::task::Role;

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

impl GroupInner {
    /// Counts a task before it is looked whether the runtime still accepts tasks.
    ///
    /// **Ordering**: off the workers, either the shutdown sees this or this thread the shutdown. A
    /// worker spawns inside a task, and is seen together with the completion of that.
    #[inline]
    pub(crate) fn count_spawn(&self, role: Role) {
        match scheduler::worker_index(&self.shared) {
            Some(worker) => {
                let spawned = &self.counts[worker].of(role).spawned;
                spawned.store(spawned.load(Ordering::Relaxed) + 1, Ordering::Release);
            }
            None => self.count_spawn_outside(role),
        }
    }

    #[cold]
    fn count_spawn_outside(&self, role: Role) {
        self.outside(role).spawned.fetch_add(1, Ordering::SeqCst);
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
        if !self.waiters.seem_empty() && self.is_quiet() {
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
        if self.is_quiet() {
            self.wake_all();
        }
    }

    /// Whether anybody waits for the group.
    pub(crate) fn has_waiters(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// Wakes everybody who waits for the group: it is quiet, or it hangs.
    pub(crate) fn wake_all(&self) {
        self.waiters.take().into_iter().for_each(|waiter| self.wake(waiter));
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

    /// Whether every task is complete, mains and services too.
    pub(super) fn is_finished(&self) -> bool {
        let completed = self.completed();
        completed == self.spawned()
    }

    pub(crate) fn wake_at_completion(&self, waker: &Waker) {
        self.waiters.add(waker);
        // Between this and the caller's look at the counts: see `settle`.
        fence(Ordering::SeqCst);
    }
}
