//! The operations that a rank has to retry (see `retry`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};

use talpf_primitives::Mutex;

use crate::numbers::{LaneNumber, Rank, Round};

/// The operations that one rank has to retry.
pub(crate) struct RetryQueue<T> {
    queues: Mutex<Queues<T>>,
    count: AtomicUsize,
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
        RetryQueue { queues: Mutex::default(), count: AtomicUsize::new(0) }
    }
}

impl<T> RetryQueue<T> {
    pub(crate) fn push(&self, destination: Destination, operation: T) {
        let mut queues = self.queues.lock();
        queues.entry(destination).or_default().push_back(operation);
        self.count.store(self.len() + 1, Ordering::Relaxed);
    }

    /// Returns the number of operations. A hint: some may be under retry.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
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

    /// Queues the `count` operations of `kept` before those that were added meanwhile.
    pub(super) fn give_back(&self, mut kept: Queues<T>, count: usize) {
        let mut queues = self.queues.lock();
        for (destination, mut newer) in std::mem::take(&mut *queues) {
            kept.entry(destination).or_default().append(&mut newer);
        }
        *queues = kept;
        self.count.store(self.len() + count, Ordering::Relaxed);
    }
}
