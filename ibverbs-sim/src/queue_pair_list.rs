//! The queue pairs that an object knows, for what it has to do with all of them.

use std::sync::{Arc, Weak};

use talpf_primitives::Mutex;

use crate::queue_pair::QueuePairCore;

/// See the module text.
#[derive(Default)]
pub(crate) struct QueuePairList {
    queue_pairs: Mutex<Vec<Weak<QueuePairCore>>>,
}

impl QueuePairList {
    /// **Cost**: constant on average, as those that are gone are forgotten only for want of room.
    pub(crate) fn add(&self, queue_pair: &Weak<QueuePairCore>) {
        let mut queue_pairs = self.queue_pairs.lock();
        if queue_pairs.len() == queue_pairs.capacity() {
            queue_pairs.retain(|other| other.strong_count() > 0);
        }
        queue_pairs.push(Weak::clone(queue_pair));
    }

    /// Those that still exist.
    pub(crate) fn all(&self) -> Vec<Arc<QueuePairCore>> {
        self.queue_pairs.lock().iter().filter_map(Weak::upgrade).collect()
    }
}
