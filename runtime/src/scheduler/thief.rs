//! Stealing, and when a worker does not.
//!
//! A stolen task brings some ten cache lines along: for a task of a few hundred nanoseconds that
//! may cost more, at both ends, than running it where it is. So a worker that finds that the tasks
//! it has stolen are short, and that it spends its time around their bodies rather than in them,
//! while the others run theirs, gives back what it has left of them and of their successors, and
//! rests: it looks for other work as ever, but leaves the tasks of other workers to them as long as
//! those who have some get on with them quickly.

use std::cell::{Cell, RefCell};

use crossbeam_deque::{Injector, Steal};
use talpf_primitives::Ordering;

use super::queues::Seat;
use super::worker::Worker;
use crate::task::RecordId;

/// Tasks that take less are short, unless most of that is their bodies'.
pub(super) const SHORT_NS: u64 = 500;
/// Stolen tasks that tell whether they are short.
const SAMPLE: u64 = 8;
/// How long a worker rests at most before it tries again.
const REST_NS: u64 = 200_000;
/// How often it looks meanwhile whether the others get on: every look costs them a cache line.
const LOOK_NS: u64 = 5_000;

/// What a worker knows of its own thefts and of the others.
pub(super) struct Thief {
    others: RefCell<Box<[Other]>>,
    /// While it runs stolen tasks: when it last measured how long they take, and its steps then.
    stolen: Cell<Option<(u64, u64)>>,
    bodies: Bodies,
    rest: Cell<Option<Rest>>,
    /// For how long the worker has had no task.
    idle_ns: Cell<u64>,
}

/// The time in the first bodies since the last measurement.
#[derive(Default)]
struct Bodies {
    /// How many more to time.
    left: Cell<u64>,
    /// Of the one that runs, unless that began before.
    began_ns: Cell<Option<u64>>,
    spent_ns: Cell<u64>,
}

#[derive(Clone, Copy, Default)]
struct Other {
    /// The task in its next slot and its steps when that was last looked at.
    next: Option<(RecordId, u64)>,
    /// What it had done when this worker last looked whether it gets on.
    done: u64,
}

#[derive(Clone, Copy)]
struct Rest {
    until_ns: u64,
    looked_ns: u64,
}

impl Thief {
    pub(super) fn new(workers: usize) -> Self {
        let others = vec![Other::default(); workers].into_boxed_slice();
        let (stolen, rest) = (Cell::new(None), Cell::new(None));
        Thief {
            others: RefCell::new(others),
            stolen,
            bodies: Bodies::default(),
            rest,
            idle_ns: Cell::new(0),
        }
    }

    /// Notes for how long the worker has had no task.
    pub(super) fn note_idle(&self, idle_ns: u64) {
        self.idle_ns.set(idle_ns);
    }

    /// Measures from here on, or not.
    fn measure_from(&self, stolen: Option<(u64, u64)>) {
        self.stolen.set(stolen);
        self.bodies.left.set(if stolen.is_some() { SAMPLE } else { 0 });
        self.bodies.began_ns.set(None);
        self.bodies.spent_ns.set(0);
    }
}

impl Bodies {
    /// The part of `task_ns`, which a task takes in all, that is its body's.
    fn part_of(&self, task_ns: u64) -> u64 {
        let timed = SAMPLE - self.left.get();
        (self.spent_ns.get() / timed.max(1)).min(task_ns)
    }
}

impl Worker {
    /// A task that another worker has, or has given back.
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
        let Seat { stealers, mail, .. } = &**self.shared.seats[victim];
        if stealers.is_empty() {
            return self.take_some(mail);
        }
        let stolen = stealers.steal_some(&self.deques);
        self.offer_rest();
        stolen
    }

    /// The first task of a queue, and some of the others into the worker's own.
    pub(super) fn take_some(&self, queue: &Injector<RecordId>) -> Option<RecordId> {
        if queue.is_empty() {
            return None;
        }
        let first = self.deques.take_some(|own| queue.steal_batch_and_pop(own));
        self.offer_rest();
        first
    }

    /// Other workers may have what this one has got together with a task.
    fn offer_rest(&self) {
        if !self.deques.is_empty() {
            self.shared.wake_another(self.index);
        }
    }

    /// Takes the task that a worker would run next, if it has lain there since the last look.
    fn steal_next(&self, victim: usize) -> Option<RecordId> {
        let next = &self.shared.seats[victim].pulse.next;
        let lies = next.peek().map(|task| (task, self.steps_of(victim)));
        let before = std::mem::replace(&mut self.thief.others.borrow_mut()[victim].next, lies);
        let (task, _) = lies.filter(|_| before == lies)?;
        next.take_if(task)
    }

    /// A task that a thief has given back.
    pub(super) fn take_returned(&self) -> Option<RecordId> {
        let returned = &self.shared.returned;
        if returned.is_empty() { None } else { until_settled(|| returned.steal()) }
    }

    /// This worker runs a program: what it has after that are tasks of its own.
    #[inline]
    pub(super) fn forget_theft(&self) {
        self.thief.measure_from(None);
    }

    /// Whether to say when the next body begins and ends.
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

    /// Gives back what is left of stolen tasks and begins to rest, if they have been short.
    #[inline]
    pub(super) fn measure_stolen(&self) {
        if let Some((since_ns, before)) = self.thief.stolen.get()
            && self.steps_of(self.index).wrapping_sub(before) / 2 >= SAMPLE
        {
            self.measure(since_ns, before);
        }
    }

    /// As `measure_stolen`, for a worker that has run out of work.
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
        let are_short = task_ns < SHORT_NS && body_ns < 2 * (task_ns - body_ns);
        if !(self.shared.spins() && are_short && self.others_get_on(in_ns / SHORT_NS)) {
            self.note_done();
            self.thief.measure_from(Some((now_ns, steps)));
            return;
        }
        self.thief.measure_from(None);
        let next = &self.seat().pulse.next;
        while let Some(task) = next.take().or_else(|| self.deques.pop()) {
            self.shared.give_back(task);
        }
        self.note_done();
        self.thief.rest.set(Some(Rest { until_ns: now_ns + REST_NS, looked_ns: now_ns }));
    }

    /// Whether this worker, which has found nothing to do, rests on.
    #[inline]
    pub(super) fn rests(&self, now_ns: u64) -> bool {
        let Some(rest) = self.thief.rest.get() else {
            return false;
        };
        let since_ns = now_ns.saturating_sub(rest.looked_ns);
        if since_ns >= LOOK_NS {
            let goes_on = now_ns < rest.until_ns && self.others_get_on(since_ns / SHORT_NS);
            self.thief.rest.set(goes_on.then_some(Rest { looked_ns: now_ns, ..rest }));
        }
        true
    }

    /// Whether every worker that has ready tasks has run or spawned as many since the last look.
    fn others_get_on(&self, tasks: u64) -> bool {
        let returned = !self.shared.returned.is_empty();
        let has_ready =
            |seat: &Seat| returned || seat.has_ready() || seat.pulse.next.peek().is_some();
        let slow = |(index, seat): (usize, &Seat)| {
            let before = self.thief.others.borrow()[index].done;
            index != self.index
                && has_ready(seat)
                && self.done_by(index).wrapping_sub(before) < tasks
        };
        let all = !self.shared.seats.iter().map(|seat| &***seat).enumerate().any(slow);
        self.note_done();
        all
    }

    fn note_done(&self) {
        for (index, other) in self.thief.others.borrow_mut().iter_mut().enumerate() {
            other.done = self.done_by(index);
        }
    }

    /// Tasks that a worker has run and spawned.
    fn done_by(&self, worker: usize) -> u64 {
        let spawns = self.shared.seats[worker].pulse.spawns.load(Ordering::Relaxed);
        spawns.wrapping_add(self.steps_of(worker) / 2)
    }

    fn steps_of(&self, worker: usize) -> u64 {
        self.shared.seats[worker].pulse.steps.load(Ordering::Relaxed)
    }
}

/// Repeats a steal that lost a race.
pub(super) fn until_settled<T>(mut steal: impl FnMut() -> Steal<T>) -> Option<T> {
    loop {
        match steal() {
            Steal::Success(task) => return Some(task),
            Steal::Empty => return None,
            Steal::Retry => std::hint::spin_loop(),
        }
    }
}
