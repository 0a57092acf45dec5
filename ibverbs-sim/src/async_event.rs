//! What happens to a context's objects outside any work request.

use crate::QueuePairNumber;

/// Something went wrong that no completion can tell its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AsyncEvent {
    /// A completion queue was full and lost completions; its queue pairs are in error.
    CompletionQueueOverrun {
        /// Entries of the queue.
        capacity: u32,
    },
    /// A peer's request was refused for its address, length, key or rights.
    QueuePairAccessError {
        /// The queue pair it arrived on, now in error.
        queue_pair: QueuePairNumber,
    },
    /// A peer's request was refused as such.
    QueuePairRequestError {
        /// The queue pair it arrived on, now in error.
        queue_pair: QueuePairNumber,
    },
}
