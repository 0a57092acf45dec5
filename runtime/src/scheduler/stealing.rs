//! Stealing of the tasks of other workers, and taking from the queues of all.

use crossbeam_deque::Injector;

use super::policy::depth_first::until_settled;
use super::worker::Worker;
use super::worker_slot::WorkerSlot;
use crate::record::RecordId;

impl Worker {
    /// Takes a task that another worker of the set has, or has given back.
    pub(super) fn steal(&self) -> Option<RecordId> {
        let is_early = || !self.set.steal_delay.is_over(self.thief.idle_ns());
        if self.thief.is_resting() || is_early() {
            return None;
        }
        if let Some(returned) = self.take_returned() {
            return Some(returned);
        }
        let stolen = self.set.after(self.index).find_map(|victim| {
            self.steal_from_queues(victim).or_else(|| self.steal_next(victim))
        })?;
        self.meter().count_steal();
        self.begin_theft();
        Some(stolen)
    }

    fn steal_from_queues(&self, victim: usize) -> Option<RecordId> {
        let WorkerSlot { stealers, affinity_queue, .. } = self.set.slot(victim);
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
            self.set.wake_another(&self.slot().hot.pushes);
        }
    }

    /// Takes the task in the next slot of another worker, if it has lain there since the last
    /// attempt.
    fn steal_next(&self, victim: usize) -> Option<RecordId> {
        let next = &self.set.slot(victim).hot.next;
        let present = next.peek().map(|task| (task, self.steps_of(victim)));
        let before = self.thief.note_next(victim, present);
        let (task, _) = present.filter(|_| before == present)?;
        next.take_if(task)
    }

    /// Takes a task that every worker of the set may run.
    pub(super) fn take_injected(&self) -> Option<RecordId> {
        if self.set.injector.is_empty() {
            return None;
        }
        // A main that came along in a batch would lie in a deque, from which a resting worker does
        // not steal.
        match self.set.injector.len() > self.set.workers().len() {
            true => self.take_some(&self.set.injector),
            false => until_settled(|| self.set.injector.steal()),
        }
    }

    /// Takes a task that a thief has given back.
    pub(super) fn take_returned(&self) -> Option<RecordId> {
        let returned = &self.set.returned;
        if returned.is_empty() { None } else { until_settled(|| returned.steal()) }
    }
}
