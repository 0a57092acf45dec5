//! Asynchronous events: errors of a context's objects that belong to no work request.

use crate::QueuePairNumber;

/// An error that no completion reports.
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
        /// The queue pair that received the request, now in error.
        queue_pair: QueuePairNumber,
    },
    /// A peer's request was refused because it is not valid: not enabled, misaligned, or over a
    /// limit.
    QueuePairRequestError {
        /// The queue pair that received the request, now in error.
        queue_pair: QueuePairNumber,
    },
}
