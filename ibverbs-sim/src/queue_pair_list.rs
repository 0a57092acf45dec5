//! Lists of the queue pairs that an object refers to.

use std::sync::{Arc, Weak};

use talpf_primitives::Mutex;

use crate::queue_pair::QueuePairCore;

/// A list of queue pairs, which does not keep them alive.
#[derive(Default)]
pub(crate) struct QueuePairList {
    queue_pairs: Mutex<Vec<Weak<QueuePairCore>>>,
}

impl QueuePairList {
    /// Adds a queue pair.
    ///
    /// **Cost**: constant on average: destroyed queue pairs are removed only when the list would
    /// have to grow.
    pub(crate) fn add(&self, queue_pair: &Weak<QueuePairCore>) {
        let mut queue_pairs = self.queue_pairs.lock();
        if queue_pairs.len() == queue_pairs.capacity() {
            queue_pairs.retain(|other| other.strong_count() > 0);
        }
        queue_pairs.push(Weak::clone(queue_pair));
    }

    /// Returns the queue pairs that still exist.
    pub(crate) fn all(&self) -> Vec<Arc<QueuePairCore>> {
        self.queue_pairs.lock().iter().filter_map(Weak::upgrade).collect()
    }
}
