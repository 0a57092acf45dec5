//! Rests in which a worker does not steal.
//!
//! A stolen task brings some ten cache lines along: for a task of a few hundred nanoseconds that
//! may cost more, at both ends, than running it where it is. So a worker gives back the rest of its
//! stolen tasks and of their successors, and rests, if it finds that they are short, that it spends
//! its time around their bodies rather than in them, and that the other workers run theirs. While
//! it rests it searches for other work as before, but leaves the tasks of other workers to them, as
//! long as those that have some make quick progress.
//!
//! | figure | cost without the policy | noise |
//! |---|---|---|
//! | `runtime.chain` | +262 % | +1 % |
//! | `runtime.stencil` | +219 % | +1 % |

use std::cell::{Cell, RefCell};

use talpf_primitives::Ordering;

use super::super::worker::Worker;
use super::super::worker_slot::WorkerSlot;
use super::Policy;
use super::body_share::{Bodies, SAMPLE};
use crate::record::RecordId;

/// Tasks that take less are short, unless most of the time is spent in their bodies.
pub(in crate::scheduler) const SHORT_NS: u64 = 500;
/// Longest rest, after which the worker steals again.
const REST_NS: u64 = 200_000;
/// Time between checks, during a rest, of the progress of other workers: every check costs them a
/// cache line.
const CHECK_NS: u64 = 5_000;

/// The knowledge of a worker of its own thefts and of the other workers.
pub(in crate::scheduler) struct Thief {
    others: RefCell<Box<[OtherWorker]>>,
    /// While the worker runs stolen tasks: the time of the last measurement, and its steps at that
    /// time.
    stolen: Cell<Option<(u64, u64)>>,
    bodies: Bodies,
    rest: Cell<Option<Rest>>,
    /// Time that the worker has been without a task.
    idle_ns: Cell<u64>,
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
    pub(in crate::scheduler) fn new(workers: usize) -> Self {
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
    pub(in crate::scheduler) fn note_idle(&self, idle_ns: u64) {
        self.idle_ns.set(idle_ns);
    }

    /// Returns `true` while the worker rests.
    pub(in crate::scheduler) fn is_resting(&self) -> bool {
        self.rest.get().is_some()
    }

    /// Returns the time that the worker has been without a task.
    pub(in crate::scheduler) fn idle_ns(&self) -> u64 {
        self.idle_ns.get()
    }

    /// Notes the task in the next slot of a worker and the steps of that worker. Returns those of
    /// the attempt before.
    pub(in crate::scheduler) fn note_next(
        &self,
        victim: usize,
        present: Option<(RecordId, u64)>,
    ) -> Option<(RecordId, u64)> {
        std::mem::replace(&mut self.others.borrow_mut()[victim].next, present)
    }

    /// Starts a measurement, or ends it for `None`.
    fn measure_from(&self, stolen: Option<(u64, u64)>) {
        self.stolen.set(stolen);
        self.bodies.measure(stolen.is_some());
    }
}

impl Worker {
    /// Ends the measurement of stolen tasks, before the worker runs a main: the tasks that follow
    /// are its own.
    #[inline]
    pub(in crate::scheduler) fn forget_theft(&self) {
        self.thief.measure_from(None);
    }

    /// Returns `true` if the next body is timed.
    #[inline]
    pub(in crate::scheduler) fn times_bodies(&self) -> bool {
        self.thief.bodies.times_next()
    }

    #[cold]
    pub(in crate::scheduler) fn begin_body(&self) {
        self.thief.bodies.begin(self.shared.clock.now_ns());
    }

    #[cold]
    pub(in crate::scheduler) fn end_body(&self) {
        self.thief.bodies.end(self.shared.clock.now_ns());
    }

    /// Starts the measurement of tasks that the worker has just stolen.
    pub(in crate::scheduler) fn begin_theft(&self) {
        self.note_done();
        self.thief.measure_from(Some((self.shared.clock.now_ns(), self.steps_of(self.index))));
    }

    /// Gives back the rest of the stolen tasks and begins to rest, if they have been short.
    #[inline]
    pub(in crate::scheduler) fn measure_stolen(&self) {
        if let Some((since_ns, before)) = self.thief.stolen.get()
            && self.steps_of(self.index).wrapping_sub(before) / 2 >= SAMPLE
        {
            self.measure(since_ns, before);
        }
    }

    /// Measures as `measure_stolen`, for a worker that has run out of work.
    pub(in crate::scheduler) fn measure_all_stolen(&self) {
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
        let policies = self.shared.config.policies;
        let are_short = task_ns < SHORT_NS
            && self.thief.bodies.are_small_part_of(task_ns, policies)
            && policies.has(Policy::Rest);
        if !(self.shared.spins() && are_short && self.others_progress(in_ns / SHORT_NS)) {
            self.note_done();
            self.thief.measure_from(Some((now_ns, steps)));
            return;
        }
        self.thief.measure_from(None);
        let next = &self.slot().hot.next;
        while let Some(task) = next.take().or_else(|| self.deques.pop()) {
            self.set.give_back(task);
        }
        self.note_done();
        self.thief.rest.set(Some(Rest { until_ns: now_ns + REST_NS, checked_ns: now_ns }));
    }

    /// Returns `true` if this worker, which has found nothing to do, still rests.
    #[inline]
    pub(in crate::scheduler) fn rests(&self, now_ns: u64) -> bool {
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
        let returned = !self.set.returned.is_empty();
        let has_ready =
            |slot: &WorkerSlot| returned || slot.has_ready() || slot.hot.next.peek().is_some();
        let slow = |(index, slot): (usize, &WorkerSlot)| {
            let before = self.thief.others.borrow()[index].done;
            has_ready(slot) && self.done_by(index).wrapping_sub(before) < tasks
        };
        let all = !self.set.beside(self.index).any(slow);
        self.note_done();
        all
    }

    fn note_done(&self) {
        let mut others = self.thief.others.borrow_mut();
        for (index, _) in self.set.beside(self.index) {
            others[index].done = self.done_by(index);
        }
    }

    /// Counts the tasks that a worker has run and spawned.
    fn done_by(&self, worker: usize) -> u64 {
        let spawns = self.shared.slots[worker].hot.spawns.load(Ordering::Relaxed);
        spawns.wrapping_add(self.steps_of(worker) / 2)
    }

    pub(in crate::scheduler) fn steps_of(&self, worker: usize) -> u64 {
        self.shared.slots[worker].hot.steps.load(Ordering::Relaxed)
    }
}
