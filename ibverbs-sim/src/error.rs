//! Errors of calls on verbs objects. A failure after a request was posted is not here: it is a
//! [`CompletionStatus`](crate::CompletionStatus).

use crate::{Access, QueuePairNumber, QueuePairState};

/// The result of a call on a verbs object.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Reason for which a call was refused. A refused call has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size or count is above the limit of the device or the object.
    #[error("{what}: {requested} requested, at most {limit} possible")]
    LimitExceeded {
        /// The attribute with the limit.
        what: &'static str,
        /// The size or count that was requested.
        requested: u64,
        /// The largest possible value.
        limit: u64,
    },
    /// A size or count that must be at least 1 is 0.
    #[error("{what} must be at least 1")]
    Zero {
        /// The attribute.
        what: &'static str,
    },
    /// Remote write and atomic rights need local write.
    #[error("{access:?} lets peers change memory that the device may not write locally")]
    InconsistentAccess {
        /// The rights that were requested.
        access: Access,
    },
    /// The region would end past the last address.
    #[error("a region of {length} bytes at {address:#x} ends past the address space")]
    AddressOverflow {
        /// First address.
        address: u64,
        /// Length of the region in bytes.
        length: u64,
    },
    /// The device has no port of that number.
    #[error("no such port: {port}; the device has ports 1 to {ports}")]
    NoSuchPort {
        /// The requested port.
        port: u8,
        /// The number of ports.
        ports: u8,
    },
    /// The device's wire has no such process.
    #[error("no such process: {process}; the wire has {processes} processes")]
    NoSuchProcess {
        /// The requested process.
        process: u32,
        /// The number of processes.
        processes: u32,
    },
    /// Datagrams go to other processes only.
    #[error("a datagram to process {process}, which is this one")]
    OwnProcess {
        /// The number of this process.
        process: u32,
    },
    /// Bytes arrived over the wire that are no valid packet.
    #[error("process {process} has sent a malformed packet")]
    MalformedPacket {
        /// The process that sent the bytes.
        process: u32,
    },
    /// A process does not receive what is sent to it, and too many bytes are queued for it.
    #[error("process {process} receives nothing: {bytes} bytes queued, at most {limit} allowed")]
    Unsent {
        /// The destination of the queued bytes.
        process: u32,
        /// The bytes that would be queued, including the refused packet.
        bytes: u64,
        /// The most bytes that may be queued.
        limit: u64,
    },
    /// A call of the device's wire has panicked. The packet of a panicked send may be lost.
    #[error("the wire to other processes has panicked in {call}")]
    WirePanicked {
        /// The name of the call.
        call: &'static str,
    },
    /// A device cannot have both a plan of faults and a link model.
    #[error("a device has either faults or a link model, not both")]
    FaultsAndPrice,
    /// The objects belong to different devices, contexts or protection domains.
    #[error("{what} belongs to another {owner}")]
    ForeignObject {
        /// The object that belongs to another owner.
        what: &'static str,
        /// The kind of owner that all objects must share.
        owner: &'static str,
    },
    /// The queue pair's state does not allow the call.
    #[error("{queue_pair} is in state {state:?}, which does not allow {what}")]
    InvalidState {
        /// The queue pair.
        queue_pair: QueuePairNumber,
        /// The state of the queue pair.
        state: QueuePairState,
        /// The name of the call.
        what: &'static str,
    },
    /// The state machine has no such transition.
    #[error("{queue_pair} cannot go from {from:?} to {to:?}")]
    InvalidTransition {
        /// The queue pair.
        queue_pair: QueuePairNumber,
        /// The state of the queue pair.
        from: QueuePairState,
        /// The requested state.
        to: QueuePairState,
    },
    /// The transition needs an attribute that was not given.
    #[error("the transition to {to:?} needs {attribute}")]
    MissingAttribute {
        /// The requested state.
        to: QueuePairState,
        /// The field of [`QueuePairAttributes`](crate::QueuePairAttributes).
        attribute: &'static str,
    },
    /// The transition does not accept an attribute that was given.
    #[error("the transition to {to:?} does not accept {attribute}")]
    UnexpectedAttribute {
        /// The requested state.
        to: QueuePairState,
        /// The field of [`QueuePairAttributes`](crate::QueuePairAttributes).
        attribute: &'static str,
    },
    /// The send or receive queue has no free slot.
    #[error("the queue is full: all of its {capacity} slots are taken")]
    QueueFull {
        /// Slots of the queue.
        capacity: u32,
    },
    /// Inline data cannot be the target of a READ or an atomic.
    #[error("a request that returns data cannot have an inline payload")]
    InlineTarget,
    /// The queue pair uses a shared receive queue and has no receive queue of its own.
    #[error("{queue_pair} has a shared receive queue: post receives to that queue")]
    HasSharedReceiveQueue {
        /// The queue pair.
        queue_pair: QueuePairNumber,
    },
    /// The completion queue was made without a channel to notify.
    #[error("the completion queue has no completion channel")]
    NoCompletionChannel,
    /// More completions arrived than the completion queue holds; some are lost.
    #[error("the completion queue overran its {capacity} entries")]
    CompletionQueueOverrun {
        /// Entries of the queue.
        capacity: u32,
    },
}

/// Error of a post: one request of the batch was refused, and no request after it was posted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("request {index} of the batch was refused, and none after it was posted: {reason}")]
pub struct PostError {
    /// Index of the refused request; all requests before it were posted.
    pub index: usize,
    /// Reason for which the request was refused.
    #[source]
    pub reason: Error,
}

impl From<PostError> for Error {
    fn from(error: PostError) -> Self {
        error.reason
    }
}
