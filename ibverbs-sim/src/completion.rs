//! How a work request ended.

use crate::QueuePairNumber;

/// Why a work request ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum CompletionStatus {
    /// It did what it should.
    #[default]
    Success,
    /// The message is longer than the device carries, than the posted receive, or not the eight
    /// bytes of an atomic.
    LocalLength,
    /// A scatter/gather entry names memory that its key does not open.
    LocalProtection,
    /// The queue pair was not made for this: a READ or atomic where none may be outstanding.
    LocalQueuePairOperation,
    /// It was outstanding when the queue pair went into error. What it did is not known.
    WorkRequestFlushed,
    /// The peer refused the remote address, length or key.
    RemoteAccess,
    /// The peer refused the request as such: not enabled, misaligned, or its receive too short.
    RemoteInvalidRequest,
    /// The peer could not do its part, such as write to its own receive.
    RemoteOperation,
    /// The peer did not answer within all retries.
    RetryExceeded,
    /// The peer had no receive posted within all retries.
    ReceiverNotReadyRetryExceeded,
}

/// What a completion is about. The last two come from the receive side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum CompletionOpcode {
    /// A SEND, with or without immediate.
    #[default]
    Send,
    /// A WRITE, with or without immediate.
    Write,
    /// A READ.
    Read,
    /// A FETCH_ADD.
    FetchAdd,
    /// A CMP_SWAP.
    CompareSwap,
    /// A receive that took a SEND.
    Receive,
    /// A receive used up by a WRITE with immediate.
    ReceiveWriteWithImmediate,
}

impl CompletionOpcode {
    #[inline]
    pub(crate) const fn is_receive(self) -> bool {
        matches!(self, Self::Receive | Self::ReceiveWriteWithImmediate)
    }
}

/// One entry of a completion queue.
///
/// With a status other than `Success` only `wr_id`, `status` and `queue_pair` mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkCompletion {
    /// The number given with the work request.
    pub wr_id: u64,
    /// How it ended.
    pub status: CompletionStatus,
    /// What it was.
    pub opcode: CompletionOpcode,
    /// Bytes that arrived: for receives (a WRITE with immediate included), READs and atomics.
    pub byte_len: u32,
    /// What the peer sent along.
    pub immediate: Option<u32>,
    /// The queue pair the request was posted to, or that the message arrived on.
    pub queue_pair: QueuePairNumber,
    /// The peer's queue pair.
    pub source: QueuePairNumber,
}

/// A completion as the queue keeps it: 28 bytes, so that two slots fit a cache line.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
pub(crate) struct CompletionEntry {
    wr_id: u64,
    byte_len: u32,
    /// Of a receive: the immediate. Of a send: how many requests of its queue pair were carried
    /// out up to this one, all of which free their slots when this entry is polled.
    extra: u32,
    queue_pair: u32,
    source: u32,
    status: CompletionStatus,
    opcode: CompletionOpcode,
    has_immediate: bool,
}

impl CompletionEntry {
    /// A completion from the send side after `executed` requests of its queue pair.
    #[inline]
    pub(crate) fn send(completion: WorkCompletion, executed: u32) -> Self {
        Self { extra: executed, has_immediate: false, ..Self::receive(completion) }
    }

    /// A completion from the receive side.
    #[inline]
    pub(crate) fn receive(completion: WorkCompletion) -> Self {
        Self {
            wr_id: completion.wr_id,
            byte_len: completion.byte_len,
            extra: completion.immediate.unwrap_or(0),
            queue_pair: completion.queue_pair.0,
            source: completion.source.0,
            status: completion.status,
            opcode: completion.opcode,
            has_immediate: completion.immediate.is_some(),
        }
    }

    /// Whose slots are free with this entry, and up to which of its requests.
    #[inline]
    pub(crate) fn frees(&self) -> Option<(QueuePairNumber, u32)> {
        (!self.opcode.is_receive()).then_some((QueuePairNumber(self.queue_pair), self.extra))
    }
}

impl From<CompletionEntry> for WorkCompletion {
    #[inline]
    fn from(entry: CompletionEntry) -> Self {
        Self {
            wr_id: entry.wr_id,
            status: entry.status,
            opcode: entry.opcode,
            byte_len: entry.byte_len,
            immediate: entry.has_immediate.then_some(entry.extra),
            queue_pair: QueuePairNumber(entry.queue_pair),
            source: QueuePairNumber(entry.source),
        }
    }
}
