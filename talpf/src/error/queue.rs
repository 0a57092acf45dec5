//! The errors of remote queues.

use crate::numbers::Rank;

/// An error of a [`RemoteQueue`](crate::RemoteQueue) or of [`RemoteCalls`](crate::RemoteCalls).
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// A queue cannot go on: its other end is lost, or the run has failed.
    #[error("{rank} cannot go on with the queue of {receiver}: {reason}")]
    Failed {
        /// The rank whose end of the queue it is.
        rank: Rank,
        /// The rank that receives.
        receiver: Rank,
        /// The failure, with the rank that it is of.
        reason: String,
    },
    /// The receiver of a queue was dropped before its senders were closed.
    #[error("{rank} sends to the queue of {receiver}, which has dropped its receiver")]
    ReceiverDropped {
        /// The rank that sends.
        rank: Rank,
        /// The rank that received.
        receiver: Rank,
    },
    /// An item was sent after the sender was closed.
    #[error("{rank} sends to the queue of {receiver} after it has closed its sender")]
    SenderClosed {
        /// The rank that sends.
        rank: Rank,
        /// The rank that receives.
        receiver: Rank,
    },
    /// A rank has no such end of a queue, or has taken it.
    #[error("{rank} has no {end} of the queue of {receiver}")]
    NoEnd {
        /// The rank.
        rank: Rank,
        /// `sender` or `receiver`.
        end: &'static str,
        /// The rank that receives.
        receiver: Rank,
    },
}
