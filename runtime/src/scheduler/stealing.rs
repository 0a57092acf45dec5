//! Stealing of the tasks of other workers.

use crossbeam_deque::Injector;

use super::policy::depth_first::until_settled;
use super::worker::Worker;
use super::worker_slot::WorkerSlot;
use crate::record::RecordId;

impl Worker {
    /// Takes a task that another worker has, or has given back.
    pub(super) fn steal(&self) -> Option<RecordId> {
        let is_early = || !self.shared.steal_delay.is_over(self.thief.idle_ns());
        if self.thief.is_resting() || is_early() {
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
        self.begin_theft();
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
        let before = self.thief.note_next(victim, present);
        let (task, _) = present.filter(|_| before == present)?;
        next.take_if(task)
    }

    /// Takes a task that a thief has given back.
    pub(super) fn take_returned(&self) -> Option<RecordId> {
        let returned = &self.shared.returned;
        if returned.is_empty() { None } else { until_settled(|| returned.steal()) }
    }
}
