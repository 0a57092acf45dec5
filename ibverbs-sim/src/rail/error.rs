//! Errors of calls on rails. A failure after an operation was posted is a
//! [`CompletionStatus`](crate::CompletionStatus).

/// Reason for which a call on a rail was refused. A refused call has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RailError {
    /// The peer has not taken earlier messages, or too many operations are under way. The call can be
    /// repeated after a poll.
    #[error("no room for a further operation to process {process}")]
    NoRoom {
        /// The process that the operation was for.
        process: u32,
    },
    /// The peer has ended, or was given up.
    #[error("process {process} is lost")]
    Lost {
        /// The process that is lost.
        process: u32,
    },
    /// The message is longer than the limit.
    #[error("a message of {length} bytes, at most {limit} possible")]
    TooLong {
        /// Bytes of the message.
        length: usize,
        /// Most bytes of a message.
        limit: usize,
    },
    /// The rail leads to no such process; it does not lead to its own.
    #[error("no such peer: {process}; the rail joins {processes} processes")]
    NoSuchPeer {
        /// The number that was given.
        process: u32,
        /// The number of processes.
        processes: u32,
    },
    /// As many registrations exist as the rail has room for.
    #[error("all of the {limit} keys are in use")]
    TooManyKeys {
        /// Most registrations at a time.
        limit: usize,
    },
    /// The network does not register the memory: the limit of locked memory is reached, for instance.
    #[error("the network does not register the memory")]
    Refused,
    /// The key is of no registration of this process.
    #[error("the key is not registered")]
    NotRegistered,
}
