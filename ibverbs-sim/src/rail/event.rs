//! Events of rails, and results of their calls.

use std::os::fd::BorrowedFd;

use crate::CompletionStatus;

/// An event of a rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RailEvent<'a> {
    /// A write or a read that was under way has ended.
    Completed {
        /// The number that was given with the operation.
        context: u64,
        /// Status with which the operation ended.
        status: CompletionStatus,
    },
    /// A message has arrived.
    Message {
        /// The process that has sent the message.
        from: u32,
        /// Content of the message.
        bytes: &'a [u8],
    },
    /// All bytes of a write are there.
    Notice {
        /// The process that has written.
        from: u32,
        /// The number that was given with the write.
        notice: u32,
    },
    /// Nothing will arrive from a process any more. Operations to it have ended before.
    Lost {
        /// The process that is lost.
        process: u32,
        /// Reason of the loss.
        reason: LossReason,
    },
}

/// Reason for which a process is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LossReason {
    /// The process has ended, or has left the rail.
    #[error("it has ended or left")]
    Ended,
    /// The process has sent bytes that mean nothing, and was given up.
    #[error("it has sent {0}")]
    Malformed(&'static str),
    /// The process was given up by [`Rail::give_up`](super::Rail::give_up), as it shows no life.
    #[error("it shows no life")]
    Silent,
    /// The wire has panicked with a packet to the process.
    #[error("the wire to it has panicked")]
    WirePanicked,
}

/// State of an operation that was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// The operation has ended with this status. No event follows.
    Ended(CompletionStatus),
    /// The operation is under way. A [`RailEvent::Completed`] follows.
    UnderWay,
}

/// Object that the caller of [`Rail::arm`](super::Rail::arm) may sleep on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Armed<'a> {
    /// An event has arrived already: poll in place of sleeping.
    Ready,
    /// A file descriptor that becomes readable with the next event.
    Descriptor(BorrowedFd<'a>),
    /// No object, as the rail has none, or as something is to be sent for which peers have no room, and
    /// nothing announces room: the rail is polled after naps.
    Nothing,
}
