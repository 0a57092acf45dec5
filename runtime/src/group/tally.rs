//! Counts of the spawned and of the complete tasks of a group, and the waits for them.
//!
//! Spawns and completions are counted separately, and separately for every worker, so that spawner
//! and workers share no cache line; a wait adds them up, completions first: if they are as many as
//! the spawns read afterwards, there was an instant at which every task was complete.
//!
//! A worker counts a completion with a plain store and checks for waiters at once, which misses one
//! that registers in the same nanoseconds. So it checks once more behind a fence before it runs
//! anything but the next task of the group ([`Tally::settle`]): as long as it runs those, the group
//! is not complete.

use std::task::Waker;

use crossbeam_utils::CachePadded;
use talpf_primitives::{AtomicU64, Ordering, fence};

use crate::record::Role;
use crate::wakers::Wakers;

/// The counts of a group, and its waiters.
pub(super) struct Tally {
    /// Counts of each worker, and last of all other threads.
    counts: Box<[CachePadded<Counts>]>,
    /// Holds, which keep the group from being quiet as tasks do.
    holds: Count,
    waiters: Wakers,
    /// Largest number of outstanding tasks at which one of the waiters goes on.
    awaited_left: AtomicU64,
    /// Smallest number of completions at which one of the waiters goes on.
    awaited_completed: AtomicU64,
}

/// The counts at which a waiter goes on, without mains and services.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    /// At most as many tasks are outstanding.
    Left(u64),
    /// At least as many tasks are complete.
    Completed(u64),
}

#[derive(Default)]
struct Counts {
    members: Count,
    /// Counts of mains and services.
    others: Count,
}

#[derive(Default)]
struct Count {
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

impl Tally {
    pub(super) fn new(workers: usize) -> Self {
        let counts = (0..=workers).map(|_| CachePadded::default()).collect();
        Tally {
            counts,
            holds: Count::default(),
            waiters: Wakers::default(),
            awaited_left: AtomicU64::new(0),
            awaited_completed: AtomicU64::new(u64::MAX),
        }
    }

    /// Counts a spawn by a worker.
    #[inline]
    pub(super) fn count_spawn(&self, role: Role, worker: usize) {
        let spawned = &self.counts[worker].of(role).spawned;
        spawned.store(spawned.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Counts a spawn by any other thread.
    #[cold]
    pub(super) fn count_spawn_outside(&self, role: Role) {
        self.outside(role).spawned.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts a hold, until [`end_hold`](Self::end_hold).
    #[cold]
    pub(super) fn begin_hold(&self) {
        self.holds.spawned.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends a hold, and has to settle.
    #[cold]
    pub(super) fn end_hold(&self) {
        self.holds.completed.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns the count of all threads but the workers.
    fn outside(&self, role: Role) -> &Count {
        self.counts[self.counts.len() - 1].of(role)
    }

    /// Counts a completion on a worker. Returns `true` if it has to settle at once.
    #[inline]
    pub(super) fn count_completion(&self, role: Role, worker: usize) -> bool {
        let completed = &self.counts[worker].of(role).completed;
        completed.store(completed.load(Ordering::Relaxed) + 1, Ordering::Release);
        !self.waiters.seem_empty() && self.is_awaited()
    }

    /// Counts a completion on any other thread, which has to settle.
    #[cold]
    pub(super) fn count_completion_outside(&self, role: Role) {
        self.outside(role).completed.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns the wakers to call after completions that this thread has counted.
    ///
    /// **Ordering**: either this call sees the waiter or the waiter sees the completions.
    #[inline]
    pub(super) fn settle(&self) -> Vec<Waker> {
        fence(Ordering::SeqCst);
        // Mains and services count here too: a waiter that is woken too early checks again.
        if self.waiters.is_empty() || !self.is_awaited() {
            return Vec::new();
        }
        // Before the waiters are removed: a later one sets it again.
        self.awaited_left.swap(0, Ordering::AcqRel);
        self.awaited_completed.swap(u64::MAX, Ordering::AcqRel);
        self.waiters.take()
    }

    /// Adds a waker to call at a completion after which the counts are `until`, and at others
    /// perhaps.
    pub(super) fn add_waiter(&self, waker: &Waker, until: Until) {
        self.waiters.add(waker);
        match until {
            Until::Left(left) => self.awaited_left.fetch_max(left, Ordering::AcqRel),
            Until::Completed(count) => self.awaited_completed.fetch_min(count, Ordering::AcqRel),
        };
        // Between this and the caller's reading of the counts: see `settle`.
        fence(Ordering::SeqCst);
    }

    /// Removes all waiters.
    pub(super) fn take_waiters(&self) -> Vec<Waker> {
        self.waiters.take()
    }

    pub(super) fn has_waiters(&self) -> bool {
        !self.waiters.is_empty()
    }

    fn sum(&self, count: impl Fn(&Counts) -> u64) -> u64 {
        self.counts.iter().map(|counts| count(counts)).sum()
    }

    /// Counts the complete tasks, without mains and services.
    pub(super) fn members_completed(&self) -> u64 {
        self.sum(|counts| counts.members.completed.load(Ordering::SeqCst))
    }

    /// Counts the spawned tasks, without mains and services.
    pub(super) fn members_spawned(&self) -> u64 {
        self.sum(|counts| counts.members.spawned.load(Ordering::SeqCst))
    }

    /// Counts the spawned tasks that are not complete, without mains and services, and the holds.
    pub(super) fn outstanding(&self) -> u64 {
        // Completions first: see the module text.
        let ended = self.members_completed() + self.holds.completed.load(Ordering::SeqCst);
        self.members_spawned() + self.holds.spawned.load(Ordering::SeqCst) - ended
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.outstanding() == 0
    }

    /// Returns `true` if the counts are those that some waiter waits for.
    fn is_awaited(&self) -> bool {
        self.outstanding() <= self.awaited_left.load(Ordering::Relaxed)
            || self.members_completed() >= self.awaited_completed.load(Ordering::Relaxed)
    }

    /// Counts the complete tasks, mains and services too.
    pub(super) fn completed(&self) -> u64 {
        let others = self.sum(|counts| counts.others.completed.load(Ordering::SeqCst));
        others + self.members_completed()
    }

    /// Counts the spawned tasks, mains and services too.
    pub(super) fn spawned(&self) -> u64 {
        let others = self.sum(|counts| counts.others.spawned.load(Ordering::SeqCst));
        others + self.members_spawned()
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU32;
    use loom::thread;

    use super::*;
    use crate::wakers::model::Woken;

    fn complete(tally: &Tally, worker: usize) {
        let mut woken = Vec::new();
        if tally.count_completion(Role::Member, worker) {
            woken = tally.settle();
        }
        woken.extend(tally.settle());
        woken.into_iter().for_each(Waker::wake);
    }

    /// Lets two workers complete a task each while this thread waits `until` the counts `are_so`.
    fn model_wait(until: Until, are_so: impl Fn(&Tally) -> bool + Send + Sync + Copy + 'static) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let tally = Arc::new(Tally::new(2));
            (0..2).for_each(|worker| tally.count_spawn(Role::Member, worker));
            let workers: Vec<_> = (0..2)
                .map(|worker| {
                    let tally = tally.clone();
                    thread::spawn(move || complete(&tally, worker))
                })
                .collect();
            let (waker, woken) = Woken::waker();
            tally.add_waiter(&waker, until);
            let are_so = are_so(&tally);
            workers.into_iter().for_each(|worker| worker.join().unwrap());
            assert!(are_so || woken.is_woken());
        });
    }

    #[test]
    fn who_waits_sees_the_last_completion_or_is_woken() {
        model_wait(Until::Left(0), Tally::is_quiet);
    }

    #[test]
    fn who_waits_for_some_completions_sees_them_or_is_woken() {
        model_wait(Until::Completed(1), |tally| tally.members_completed() >= 1);
        model_wait(Until::Completed(2), |tally| tally.members_completed() >= 2);
    }

    /// Runs a task that spawns another one, which another worker runs.
    #[test]
    fn a_group_is_quiet_only_when_what_its_tasks_have_spawned_is_complete() {
        loom::model(|| {
            let shared = Arc::new((Tally::new(2), AtomicU32::new(0), AtomicU32::new(0)));
            shared.0.count_spawn_outside(Role::Member);
            let spawner = {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (tally, queued, _) = &*shared;
                    tally.count_spawn(Role::Member, 0);
                    queued.store(1, Ordering::Release);
                    complete(tally, 0);
                })
            };
            let runner = {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (tally, queued, ran) = &*shared;
                    if queued.load(Ordering::Acquire) == 1 {
                        ran.store(1, Ordering::Relaxed);
                        complete(tally, 1);
                    }
                })
            };
            let (tally, _, ran) = &*shared;
            if tally.is_quiet() {
                assert_eq!(
                    ran.load(Ordering::Relaxed),
                    1,
                    "and a thread that sees it sees its effects"
                );
            }
            spawner.join().unwrap();
            runner.join().unwrap();
        });
    }
}
