//! Everything a call can refuse. What goes wrong after a request was posted is not here: it is a
//! [`CompletionStatus`](crate::CompletionStatus).

use crate::{Access, QueuePairNumber, QueuePairState};

/// The result of a call on a verbs object.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call was refused. A refused call has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size or count is over what the device or the object was made for.
    #[error("{what}: {requested} requested, at most {limit} possible")]
    LimitExceeded {
        /// The attribute with the limit.
        what: &'static str,
        /// What the caller asked for.
        requested: u64,
        /// The largest possible value.
        limit: u64,
    },
    /// A size or count is below what makes sense.
    #[error("{what} must be at least 1")]
    Zero {
        /// The attribute.
        what: &'static str,
    },
    /// Remote write and atomic rights need local write.
    #[error("{access:?} lets peers change memory that the device may not write locally")]
    InconsistentAccess {
        /// The rights asked for.
        access: Access,
    },
    /// The region would end past the last address.
    #[error("a region of {length} bytes at {address:#x} passes the end of the address space")]
    AddressOverflow {
        /// First address.
        address: u64,
        /// Bytes asked for.
        length: u64,
    },
    /// The device has no port of that number.
    #[error("no port {port}, the device has ports 1 to {ports}")]
    NoSuchPort {
        /// The port asked for.
        port: u8,
        /// How many there are.
        ports: u8,
    },
    /// The device's wire does not lead to such a process.
    #[error("no process {process}, there are {processes}")]
    NoSuchProcess {
        /// The process asked for.
        process: u32,
        /// How many there are.
        processes: u32,
    },
    /// Something came over the wire that is no packet.
    #[error("process {process} has sent something that is no packet")]
    MalformedPacket {
        /// Where it came from.
        process: u32,
    },
    /// A process does not take in what is sent to it: nothing more is sent.
    #[error("process {process} takes nothing in: {bytes} bytes wait for it, at most {limit} may")]
    Unsent {
        /// The process that they are for.
        process: u32,
        /// The bytes that wait, with those that were to be sent.
        bytes: u64,
        /// The most that may wait.
        limit: u64,
    },
    /// A call of the device's wire has panicked. What was to be sent may be lost.
    #[error("the wire to other processes has panicked in {call}")]
    WirePanicked {
        /// The call.
        call: &'static str,
    },
    /// The objects belong to different devices, contexts or protection domains.
    #[error("{what} belongs to another {owner}")]
    ForeignObject {
        /// The object that does not fit.
        what: &'static str,
        /// What it should share with the others.
        owner: &'static str,
    },
    /// The queue pair's state does not allow the call.
    #[error("{queue_pair} is in state {state:?}, which does not allow {what}")]
    InvalidState {
        /// The queue pair.
        queue_pair: QueuePairNumber,
        /// Its state.
        state: QueuePairState,
        /// The call.
        what: &'static str,
    },
    /// There is no such transition.
    #[error("{queue_pair} cannot go from {from:?} to {to:?}")]
    InvalidTransition {
        /// The queue pair.
        queue_pair: QueuePairNumber,
        /// Its state.
        from: QueuePairState,
        /// The state asked for.
        to: QueuePairState,
    },
    /// The transition needs an attribute that is not given.
    #[error("the transition to {to:?} needs {attribute}")]
    MissingAttribute {
        /// The state asked for.
        to: QueuePairState,
        /// The attribute's field.
        attribute: &'static str,
    },
    /// The transition does not take an attribute that is given.
    #[error("the transition to {to:?} does not take {attribute}")]
    UnexpectedAttribute {
        /// The state asked for.
        to: QueuePairState,
        /// The attribute's field.
        attribute: &'static str,
    },
    /// The send or receive queue has no free slot.
    #[error("the queue is full: all of its {capacity} slots are taken")]
    QueueFull {
        /// Slots of the queue.
        capacity: u32,
    },
    /// Inline data cannot be the target of a READ or an atomic.
    #[error("a request that brings data back cannot have an inline payload")]
    InlineTarget,
    /// The queue pair takes its receives from a shared receive queue.
    #[error("{queue_pair} has a shared receive queue; post receives there")]
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

/// A batch was posted up to a request that was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("request {index} of the batch was not posted, nor any after it: {reason}")]
pub struct PostError {
    /// The first request that was not posted; all before it were.
    pub index: usize,
    /// Why.
    #[source]
    pub reason: Error,
}

impl From<PostError> for Error {
    fn from(error: PostError) -> Self {
        error.reason
    }
}
