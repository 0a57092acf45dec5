//! The operations that a rank has to retry (see `retry`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use talpf_primitives::Mutex;

use crate::numbers::{LaneNumber, Rank, Round};

/// The operations that one rank has to retry.
pub(crate) struct RetryQueue<T> {
    queues: Mutex<Queues<T>>,
    count: AtomicUsize,
    /// Set while an event announces when each operation is to be retried. Changed under the lock.
    are_announced: AtomicBool,
}

/// The operations of a target that are retried one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sequence {
    /// Operations of a lane.
    Lane(LaneNumber),
    /// Operations with notifications of an id.
    Notification(u32),
}

/// The target, and the sequence and round, of an operation.
type Destination = (Rank, Sequence, Round);
/// Operations by destination, each queue in order.
pub(super) type Queues<T> = BTreeMap<Destination, VecDeque<T>>;

impl<T> Default for RetryQueue<T> {
    fn default() -> Self {
        let (queues, count) = (Mutex::default(), AtomicUsize::new(0));
        RetryQueue { queues, count, are_announced: AtomicBool::new(false) }
    }
}

impl<T> RetryQueue<T> {
    pub(crate) fn push(&self, destination: Destination, operation: T) {
        let mut queues = self.queues.lock();
        // Often it is the only one.
        let queue = queues.entry(destination).or_insert_with(|| VecDeque::with_capacity(1));
        queue.push_back(operation);
        self.are_announced.store(false, Ordering::Relaxed);
        self.count.store(self.len() + 1, Ordering::Relaxed);
    }

    /// Returns the number of operations. A hint: some may be under retry.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns `true` if there are operations and no event announces when they are to be retried.
    #[inline]
    pub(crate) fn has_unannounced(&self) -> bool {
        self.len() > 0 && !self.are_announced.load(Ordering::Relaxed)
    }

    /// Takes all operations.
    pub(crate) fn drain(&self) -> impl Iterator<Item = T> {
        self.take().0.into_values().flatten()
    }

    /// Takes all operations, and their number.
    pub(super) fn take(&self) -> (Queues<T>, usize) {
        let mut queues = self.queues.lock();
        let count = self.len();
        self.count.store(0, Ordering::Relaxed);
        (std::mem::take(&mut queues), count)
    }

    /// Queues the `count` operations of `kept` before those that were added meanwhile. An event announces when
    /// those of `kept` are to be retried if `are_announced`.
    pub(super) fn give_back(&self, kept: Queues<T>, count: usize, are_announced: bool) {
        let mut queues = self.queues.lock();
        let newer = std::mem::take(&mut *queues);
        self.are_announced.store(are_announced && newer.is_empty(), Ordering::Relaxed);
        *queues = joined(kept, newer);
        self.count.store(self.len() + count, Ordering::Relaxed);
    }
}

/// Returns all operations, of each destination those of `first` before the others. The time is that of the fewer
/// ones: of two threads that retry at once, one has taken all operations and the other only what came last.
fn joined<T>(mut first: Queues<T>, mut rest: Queues<T>) -> Queues<T> {
    if first.len() < rest.len() {
        for (destination, queue) in first {
            let behind = rest.entry(destination).or_default();
            *behind = in_order(queue, std::mem::take(behind));
        }
        return rest;
    }
    for (destination, queue) in rest {
        let before = first.entry(destination).or_default();
        *before = in_order(std::mem::take(before), queue);
    }
    first
}

/// Returns the operations of `first`, then those of `rest`. The shorter queue is moved.
fn in_order<T>(mut first: VecDeque<T>, mut rest: VecDeque<T>) -> VecDeque<T> {
    if first.len() < rest.len() {
        while let Some(last) = first.pop_back() {
            rest.push_front(last);
        }
        return rest;
    }
    first.append(&mut rest);
    first
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    fn queues(operations: &[(u64, u32)]) -> Queues<u32> {
        let queue = RetryQueue::default();
        for (round, operation) in operations {
            queue.push((Rank(0), Sequence::Notification(0), Round(*round)), *operation);
        }
        queue.take().0
    }

    #[test]
    fn operations_that_are_given_back_come_before_newer_ones_whichever_are_more() {
        let few = [(2, 20), (2, 21)];
        let many = [(1, 10), (2, 22), (2, 23), (2, 24), (3, 30), (4, 40)];
        for (older, newer) in [(&few[..], &many[..]), (&many[..], &few[..])] {
            let retries = RetryQueue::default();
            retries.give_back(queues(newer), newer.len(), true);
            assert!(!retries.has_unannounced());
            retries.give_back(queues(older), older.len(), true);
            assert!(retries.has_unannounced(), "those of two threads");
            assert_eq!(retries.len(), 8);
            let in_order = [older, newer].concat();
            let of_round = |round| in_order.iter().filter(move |(of, _)| *of == round);
            let expected = (1..=4).flat_map(of_round).map(|(_, operation)| *operation);
            assert_eq!(retries.drain().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
    }
}
