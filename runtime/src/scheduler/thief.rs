//! Stealing, and the rests in which a worker does not steal.
//!
//! A stolen task brings some ten cache lines along: for a task of a few hundred nanoseconds that
//! may cost more, at both ends, than running it where it is. So a worker gives back the rest of its
//! stolen tasks and of their successors, and rests, if it finds that they are short, that it spends
//! its time around their bodies rather than in them, and that the other workers run theirs. While
//! it rests it searches for other work as before, but leaves the tasks of other workers to them, as
//! long as those that have some make quick progress.

use std::cell::{Cell, RefCell};

use crossbeam_deque::{Injector, Steal};
use talpf_primitives::Ordering;

use super::policy::Policy;
use super::worker::Worker;
use super::worker_slot::WorkerSlot;
use crate::record::RecordId;

/// Tasks that take less are short, unless most of the time is spent in their bodies.
pub(super) const SHORT_NS: u64 = 500;
/// Number of stolen tasks that are timed together.
const SAMPLE: u64 = 8;
/// Longest rest, after which the worker steals again.
const REST_NS: u64 = 200_000;
/// Time between checks, during a rest, of the progress of other workers: every check costs them a
/// cache line.
const CHECK_NS: u64 = 5_000;

/// The knowledge of a worker of its own thefts and of the other workers.
pub(super) struct Thief {
    others: RefCell<Box<[OtherWorker]>>,
    /// While the worker runs stolen tasks: the time of the last measurement, and its steps at that
    /// time.
    stolen: Cell<Option<(u64, u64)>>,
    bodies: Bodies,
    rest: Cell<Option<Rest>>,
    /// Time that the worker has been without a task.
    idle_ns: Cell<u64>,
}

/// Time spent in the first bodies since the last measurement.
#[derive(Default)]
struct Bodies {
    /// Number of bodies still to time.
    left: Cell<u64>,
    /// Start of the running body, unless it began before the measurement.
    began_ns: Cell<Option<u64>>,
    spent_ns: Cell<u64>,
}

#[derive(Clone, Copy, Default)]
/// The knowledge of one other worker.
struct OtherWorker {
    /// The task in the worker's next slot and the worker's steps, at the last attempt to steal from
    /// there.
    next: Option<(RecordId, u64)>,
    /// Tasks that the worker had done at the last check of its progress.
    done: u64,
}

#[derive(Clone, Copy)]
/// A rest from stealing.
struct Rest {
    until_ns: u64,
    checked_ns: u64,
}

impl Thief {
    pub(super) fn new(workers: usize) -> Self {
        let others = vec![OtherWorker::default(); workers].into_boxed_slice();
        let (stolen, rest) = (Cell::new(None), Cell::new(None));
        Thief {
            others: RefCell::new(others),
            stolen,
            bodies: Bodies::default(),
            rest,
            idle_ns: Cell::new(0),
        }
    }

    /// Notes how long the worker has been without a task.
    pub(super) fn note_idle(&self, idle_ns: u64) {
        self.idle_ns.set(idle_ns);
    }

    /// Starts a measurement, or ends it for `None`.
    fn measure_from(&self, stolen: Option<(u64, u64)>) {
        self.stolen.set(stolen);
        self.bodies.left.set(if stolen.is_some() { SAMPLE } else { 0 });
        self.bodies.began_ns.set(None);
        self.bodies.spent_ns.set(0);
    }
}

impl Bodies {
    /// Returns the part of `task_ns`, the whole time of a task, that is spent in its body.
    fn part_of(&self, task_ns: u64) -> u64 {
        let timed = SAMPLE - self.left.get();
        (self.spent_ns.get() / timed.max(1)).min(task_ns)
    }
}

impl Worker {
    /// Takes a task that another worker has, or has given back.
    pub(super) fn steal(&self) -> Option<RecordId> {
        let is_early = || !self.shared.steal_delay.is_over(self.thief.idle_ns.get());
        if self.thief.rest.get().is_some() || is_early() {
            return None;
        }
        if let Some(returned) = self.take_returned() {
            return Some(returned);
        }
        let workers = self.shared.workers();
        let mut victims = (1..workers).map(|distance| (self.index + distance) % workers);
        let stolen = victims.find_map(|victim| {
            self.steal_from_queues(victim).or_else(|| self.steal_next(victim))
        })?;
        self.meter().count_steal();
        self.note_done();
        self.thief.measure_from(Some((self.shared.clock.now_ns(), self.steps_of(self.index))));
        Some(stolen)
    }

    fn steal_from_queues(&self, victim: usize) -> Option<RecordId> {
        let WorkerSlot { stealers, affinity_queue, .. } = &**self.shared.slots[victim];
        if stealers.is_empty() {
            return self.take_some(affinity_queue);
        }
        let stolen = stealers.steal_some(&self.deques);
        self.wake_for_batch();
        stolen
    }

    /// Takes the first task of a queue, and moves some of the others into the worker's own.
    pub(super) fn take_some(&self, queue: &Injector<RecordId>) -> Option<RecordId> {
        if queue.is_empty() {
            return None;
        }
        let first =
            self.deques.take_some(|own, most| queue.steal_batch_with_limit_and_pop(own, most));
        self.wake_for_batch();
        first
    }

    /// Wakes another worker for the tasks that came along with a stolen one.
    fn wake_for_batch(&self) {
        if !self.deques.is_empty() {
            self.shared.wake_another(self.index);
        }
    }

    /// Takes the task in the next slot of another worker, if it has lain there since the last
    /// attempt.
    fn steal_next(&self, victim: usize) -> Option<RecordId> {
        let next = &self.shared.slots[victim].hot.next;
        let present = next.peek().map(|task| (task, self.steps_of(victim)));
        let before = std::mem::replace(&mut self.thief.others.borrow_mut()[victim].next, present);
        let (task, _) = present.filter(|_| before == present)?;
        next.take_if(task)
    }

    /// Takes a task that a thief has given back.
    pub(super) fn take_returned(&self) -> Option<RecordId> {
        let returned = &self.shared.returned;
        if returned.is_empty() { None } else { until_settled(|| returned.steal()) }
    }

    /// Ends the measurement of stolen tasks, before the worker runs a main: the tasks that follow
    /// are its own.
    #[inline]
    pub(super) fn forget_theft(&self) {
        self.thief.measure_from(None);
    }

    /// Returns `true` if the next body is timed.
    #[inline]
    pub(super) fn times_bodies(&self) -> bool {
        self.thief.bodies.left.get() > 0
    }

    #[cold]
    pub(super) fn begin_body(&self) {
        self.thief.bodies.began_ns.set(Some(self.shared.clock.now_ns()));
    }

    #[cold]
    pub(super) fn end_body(&self) {
        let Bodies { left, began_ns, spent_ns } = &self.thief.bodies;
        if let Some(began_ns) = began_ns.take() {
            let body_ns = self.shared.clock.now_ns().saturating_sub(began_ns);
            spent_ns.set(spent_ns.get() + body_ns);
            left.set(left.get() - 1);
        }
    }

    /// Gives back the rest of the stolen tasks and begins to rest, if they have been short.
    #[inline]
    pub(super) fn measure_stolen(&self) {
        if let Some((since_ns, before)) = self.thief.stolen.get()
            && self.steps_of(self.index).wrapping_sub(before) / 2 >= SAMPLE
        {
            self.measure(since_ns, before);
        }
    }

    /// Measures as `measure_stolen`, for a worker that has run out of work.
    pub(super) fn measure_all_stolen(&self) {
        if let Some((since_ns, before)) = self.thief.stolen.get() {
            self.measure(since_ns, before);
            self.thief.measure_from(None);
        }
    }

    #[cold]
    fn measure(&self, since_ns: u64, steps_before: u64) {
        let (now_ns, steps) = (self.shared.clock.now_ns(), self.steps_of(self.index));
        let tasks = (steps.wrapping_sub(steps_before) / 2).max(1);
        let in_ns = now_ns.saturating_sub(since_ns);
        let task_ns = in_ns / tasks;
        let body_ns = self.thief.bodies.part_of(task_ns);
        let policies = self.shared.config.policies;
        let is_around = body_ns < 2 * (task_ns - body_ns) || !policies.has(Policy::BodyShare);
        let are_short = task_ns < SHORT_NS && is_around && policies.has(Policy::Rest);
        if !(self.shared.spins() && are_short && self.others_progress(in_ns / SHORT_NS)) {
            self.note_done();
            self.thief.measure_from(Some((now_ns, steps)));
            return;
        }
        self.thief.measure_from(None);
        let next = &self.slot().hot.next;
        while let Some(task) = next.take().or_else(|| self.deques.pop()) {
            self.shared.give_back(task);
        }
        self.note_done();
        self.thief.rest.set(Some(Rest { until_ns: now_ns + REST_NS, checked_ns: now_ns }));
    }

    /// Returns `true` if this worker, which has found nothing to do, still rests.
    #[inline]
    pub(super) fn rests(&self, now_ns: u64) -> bool {
        let Some(rest) = self.thief.rest.get() else {
            return false;
        };
        let since_ns = now_ns.saturating_sub(rest.checked_ns);
        if since_ns >= CHECK_NS {
            let rests_on = now_ns < rest.until_ns && self.others_progress(since_ns / SHORT_NS);
            self.thief.rest.set(rests_on.then_some(Rest { checked_ns: now_ns, ..rest }));
        }
        true
    }

    /// Returns `true` if every worker that has ready tasks has run or spawned as many as `tasks`
    /// since the last check.
    fn others_progress(&self, tasks: u64) -> bool {
        let returned = !self.shared.returned.is_empty();
        let has_ready =
            |slot: &WorkerSlot| returned || slot.has_ready() || slot.hot.next.peek().is_some();
        let slow = |(index, slot): (usize, &WorkerSlot)| {
            let before = self.thief.others.borrow()[index].done;
            index != self.index
                && has_ready(slot)
                && self.done_by(index).wrapping_sub(before) < tasks
        };
        let all = !self.shared.slots.iter().map(|slot| &***slot).enumerate().any(slow);
        self.note_done();
        all
    }

    fn note_done(&self) {
        for (index, other) in self.thief.others.borrow_mut().iter_mut().enumerate() {
            other.done = self.done_by(index);
        }
    }

    /// Counts the tasks that a worker has run and spawned.
    fn done_by(&self, worker: usize) -> u64 {
        let spawns = self.shared.slots[worker].hot.spawns.load(Ordering::Relaxed);
        spawns.wrapping_add(self.steps_of(worker) / 2)
    }

    fn steps_of(&self, worker: usize) -> u64 {
        self.shared.slots[worker].hot.steps.load(Ordering::Relaxed)
    }
}

/// Repeats a steal until it has not lost a race.
pub(super) fn until_settled<T>(mut steal: impl FnMut() -> Steal<T>) -> Option<T> {
    loop {
        match steal() {
            Steal::Success(task) => return Some(task),
            Steal::Empty => return None,
            Steal::Retry => std::hint::spin_loop(),
        }
    }
}
