//! Sets of workers that share tasks.
//!
//! The workers of a runtime form one set or several. A group belongs to one of them, and only its
//! workers run the tasks of the group: all queues that a worker takes tasks from are its own, those
//! of others of its set, or the shared ones here. So a set is what a worker parks in, wakes others of,
//! and steals within; hangs, counts and the shutdown are those of the whole runtime (`shared.rs`).
//!
//! Numbers of workers are those of the runtime, also here.

use std::ops::Range;
use std::sync::Arc;

use crossbeam_deque::Injector;
use crossbeam_utils::CachePadded;
use talpf_primitives::{AtomicUsize, Ordering, Unparker};

use super::idle_set::{IdleSet, PushMark};
use super::policy::Policies;
use super::policy::steal_delay::StealDelay;
use super::policy::wake_preferred::best_to_wake;
use super::priority::PriorityQueue;
use super::timers::Timers;
use super::worker_slot::WorkerSlot;
use crate::record::{Phase, RecordId, Role, record};

/// Workers that run the tasks of the same groups, and the queues that they share.
pub(crate) struct WorkerSet {
    /// Number of the first worker; the others follow it.
    first: usize,
    slots: Box<[Arc<CachePadded<WorkerSlot>>]>,
    unparkers: Box<[Unparker]>,
    pub(super) injector: Injector<RecordId>,
    /// Tasks that thieves have given back.
    pub(super) returned: Injector<RecordId>,
    pub(super) priorities: PriorityQueue,
    pub(super) timers: Timers,
    /// On a cache line of its own, as all workers read their set, and change this when they park.
    idle: CachePadded<IdleSet>,
    /// Number of parked workers that wake by themselves to watch the others.
    watchers: AtomicUsize,
    pub(super) steal_delay: StealDelay,
    policies: Policies,
}

impl WorkerSet {
    pub(super) fn new(
        first: usize,
        slots: &[Arc<CachePadded<WorkerSlot>>],
        unparkers: &[Unparker],
        steal_delay: StealDelay,
        policies: Policies,
    ) -> Self {
        WorkerSet {
            first,
            slots: slots.into(),
            unparkers: unparkers.into(),
            injector: Injector::new(),
            returned: Injector::new(),
            priorities: PriorityQueue::default(),
            timers: Timers::new(),
            idle: CachePadded::default(),
            watchers: AtomicUsize::new(0),
            steal_delay,
            policies,
        }
    }

    /// Returns the numbers of the workers.
    pub(crate) fn workers(&self) -> Range<usize> {
        self.first..self.first + self.slots.len()
    }

    #[inline]
    pub(super) fn slots(&self) -> impl Iterator<Item = &WorkerSlot> {
        self.slots.iter().map(|slot| &***slot)
    }

    /// Iterates over the workers beside `worker`, with their numbers.
    #[inline]
    pub(super) fn beside(&self, worker: usize) -> impl Iterator<Item = (usize, &WorkerSlot)> {
        (self.first..).zip(self.slots()).filter(move |(other, _)| *other != worker)
    }

    /// Iterates over the numbers of the workers after `worker`, and then of those before it.
    pub(super) fn after(&self, worker: usize) -> impl Iterator<Item = usize> + use<> {
        let Range { start, end } = self.workers();
        (worker + 1..end).chain(start..worker)
    }

    /// Returns the slot of one of the workers.
    pub(super) fn slot(&self, worker: usize) -> &WorkerSlot {
        &self.slots[worker - self.first]
    }

    /// Wakes a parked worker for work that was just made outside the workers' deques.
    pub(super) fn wake_one(&self) {
        self.unpark(self.idle.after_shared_push(None));
    }

    /// Wakes a parked worker for work that another, with this mark, has just put into its deque.
    #[inline]
    pub(super) fn wake_another(&self, pushes: &PushMark) {
        self.unpark(self.idle.after_push(pushes));
    }

    #[inline]
    fn unpark(&self, worker: Option<usize>) {
        if let Some(worker) = worker {
            self.unparkers[worker - self.first].unpark();
        }
    }

    pub(super) fn unpark_all(&self) {
        self.unparkers.iter().for_each(Unparker::unpark);
    }

    /// Wakes a parked worker, if there is one and none watches, to watch the calling worker, which
    /// is about to run a task.
    pub(super) fn keep_watch(&self) {
        // A worker that parks at this moment sees this one awake, and watches by itself.
        if self.idle.len() > 0 && self.watchers.load(Ordering::SeqCst) == 0 {
            self.wake_one();
        }
    }

    pub(super) fn watch(&self, watches: bool) {
        match watches {
            true => self.watchers.fetch_add(1, Ordering::SeqCst),
            false => self.watchers.fetch_sub(1, Ordering::SeqCst),
        };
    }

    pub(super) fn enter_idle(&self, worker: usize) {
        self.idle.enter(worker);
    }

    /// Returns `true` if a worker is still in the idle set: nobody has removed it to wake it.
    pub(super) fn is_idle(&self, worker: usize) -> bool {
        self.idle.contains(worker)
    }

    /// Returns `true` if some worker is neither parked nor about to park.
    pub(super) fn is_any_awake(&self) -> bool {
        self.idle.len() < self.slots.len()
    }

    /// Returns `true` if all workers are parked or about to park, after everything that they did
    /// before.
    pub(super) fn are_all_idle(&self) -> bool {
        self.idle.count() == self.slots.len()
    }

    /// Removes a worker that goes on. Returns `false` if another thread has removed it to wake it.
    pub(super) fn leave_idle(&self, worker: usize) -> bool {
        self.idle.leave(worker)
    }

    /// Returns `true` if a worker that is about to park would find anything to do.
    pub(super) fn has_work(&self) -> bool {
        self.has_ready_shared() || self.slots.iter().any(|slot| slot.has_work())
    }

    /// Queues a task for every worker.
    pub(super) fn inject(&self, task: RecordId) {
        self.injector.push(task);
        self.wake_one();
    }

    /// Queues a task for worker `preferred`, and for others that have nothing else to do.
    pub(super) fn push_to_affinity_queue(&self, preferred: usize, task: RecordId) {
        self.slot(preferred).affinity_queue.push(task);
        self.unpark(self.idle.after_shared_push(best_to_wake(self.policies, preferred)));
    }

    /// Queues a task that a thief gives back; for every worker if it may be long.
    pub(super) fn give_back(&self, task: RecordId) {
        if goes_on_anywhere(task) {
            return self.inject(task);
        }
        if let Some(preferred) = record(task).preferred_worker() {
            return self.push_to_affinity_queue(preferred, task);
        }
        self.returned.push(task);
        self.wake_one();
    }

    /// Returns `true` if a task is ready that any worker may run.
    pub(crate) fn has_ready(&self) -> bool {
        self.has_ready_shared() || self.slots.iter().any(|slot| slot.has_ready())
    }

    /// Returns `true` if a task is ready that worker `worker` may run, beside those in its queues.
    #[inline]
    pub(super) fn has_ready_beside(&self, worker: usize) -> bool {
        self.has_ready_shared() || self.beside(worker).any(|(_, slot)| slot.has_ready())
    }

    #[inline]
    fn has_ready_shared(&self) -> bool {
        !self.injector.is_empty() || !self.returned.is_empty() || !self.priorities.is_empty()
    }

    /// Notes that tasks with tiles of `bytes` are queued for one worker.
    pub(crate) fn note_tile(&self, bytes: usize) {
        self.steal_delay.note_tile(bytes);
    }

    /// Returns `true` if a worker has a task in its next slot.
    pub(crate) fn has_next(&self) -> bool {
        self.slots.iter().any(|slot| slot.hot.next.peek().is_some())
    }

    /// Returns `true` if each worker is in a task that counts as progress.
    pub(crate) fn are_all_in_tasks(&self) -> bool {
        self.slots.iter().all(|slot| slot.hot.is_in_task())
    }
}

/// Returns `true` if a task is a main or has been woken, so that it may keep a worker busy for
/// long.
#[inline]
pub(super) fn goes_on_anywhere(task: RecordId) -> bool {
    let task = record(task);
    task.role() == Role::Main || task.state.phase().1 == Phase::Scheduled
}
