//! Counts of the tasks of a group that were spawned and that are complete, and the waits for them.
//!
//! Both are counted apart and for every worker apart, so that spawner and workers share no line; a
//! wait adds them up, completions first: if they are as many as the spawns read afterwards, there
//! was an instant at which every task was complete.
//!
//! A worker counts a completion with a plain store and looks for waiters at once, which misses one
//! that registers in the same nanoseconds. So it looks once more behind a fence before it goes on
//! to anything but the next task of the group ([`Tally::settle`]): as long as it runs those, the
//! group is not complete.

use std::task::Waker;

use crossbeam_utils::CachePadded;
use talpf_primitives::{AtomicU64, Ordering, fence};

use crate::task::Role;
use crate::wakers::Wakers;

/// The counts of a group, and its waiters.
pub(super) struct Tally {
    /// One a worker, and a last one for all other threads.
    counts: Box<[CachePadded<Counts>]>,
    waiters: Wakers,
    /// The most outstanding tasks that one of those who wait waits for.
    awaited: AtomicU64,
}

#[derive(Default)]
struct Counts {
    members: Count,
    /// Mains and services.
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
        Tally { counts, waiters: Wakers::default(), awaited: AtomicU64::new(0) }
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

    /// The count of all threads but the workers.
    fn outside(&self, role: Role) -> &Count {
        self.counts[self.counts.len() - 1].of(role)
    }

    /// Counts a completion on a worker. `true`: it has to settle at once.
    #[inline]
    pub(super) fn count_completion(&self, role: Role, worker: usize) -> bool {
        let completed = &self.counts[worker].of(role).completed;
        completed.store(completed.load(Ordering::Relaxed) + 1, Ordering::Release);
        !self.waiters.seem_empty() && self.is_awaited()
    }

    /// Counts a completion anywhere else, which has to settle.
    #[cold]
    pub(super) fn count_completion_outside(&self, role: Role) {
        self.outside(role).completed.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns whom to wake after completions that this thread has counted.
    ///
    /// **Ordering**: either this sees the waiter or the waiter sees the completions.
    #[inline]
    pub(super) fn settle(&self) -> Vec<Waker> {
        fence(Ordering::SeqCst);
        // Mains and services count here too: whoever waits for less looks again.
        if self.waiters.is_empty() || !self.is_awaited() {
            return Vec::new();
        }
        // Before they are taken out: whoever comes after that sets it anew.
        self.awaited.swap(0, Ordering::AcqRel);
        self.waiters.take()
    }

    /// Adds somebody to wake at a completion that leaves `left` tasks outstanding or fewer, and at
    /// others perhaps.
    pub(super) fn add_waiter(&self, waker: &Waker, left: u64) {
        self.waiters.add(waker);
        self.awaited.fetch_max(left, Ordering::AcqRel);
        // Between this and the caller's look at the counts: see `settle`.
        fence(Ordering::SeqCst);
    }

    /// Takes everybody out who waits.
    pub(super) fn take_waiters(&self) -> Vec<Waker> {
        self.waiters.take()
    }

    pub(super) fn has_waiters(&self) -> bool {
        !self.waiters.is_empty()
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
    pub(super) fn outstanding(&self) -> u64 {
        // Completions first: see the module text.
        let completed = self.members_completed();
        self.members_spawned() - completed
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.outstanding() == 0
    }

    /// Returns whether as few tasks are outstanding as anybody waits for.
    fn is_awaited(&self) -> bool {
        self.outstanding() <= self.awaited.load(Ordering::Relaxed)
    }

    /// Tasks that are complete, mains and services too.
    pub(super) fn completed(&self) -> u64 {
        let others = self.sum(|counts| counts.others.completed.load(Ordering::SeqCst));
        others + self.members_completed()
    }

    /// Tasks that were spawned, mains and services too.
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

    #[test]
    fn who_waits_sees_the_last_completion_or_is_woken() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let tally = Arc::new(Tally::new(2));
            (0..2).for_each(|worker| tally.count_spawn(Role::Member, worker));
            let workers: Vec<_> = (0..2)
                .map(|worker| {
                    let tally = tally.clone();
                    thread::spawn(move || complete(&tally, worker))
                })
                .collect();
            let (waker, woken) = Woken::waker();
            tally.add_waiter(&waker, 0);
            let quiet = tally.is_quiet();
            workers.into_iter().for_each(|worker| worker.join().unwrap());
            assert!(quiet || woken.is_woken());
        });
    }

    /// A task spawns another one, which another worker runs.
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
                assert_eq!(ran.load(Ordering::Relaxed), 1, "and who sees that sees what it did");
            }
            spawner.join().unwrap();
            runner.join().unwrap();
        });
    }
}
