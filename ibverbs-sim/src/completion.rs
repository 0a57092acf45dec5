//! Completions of work requests.

use crate::{CompletionStatus, QueuePairNumber};

/// Operation that a completion reports. The last two come from the receive side.
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

/// An entry of a completion queue.
///
/// With a status other than `Success` only `wr_id`, `status` and `queue_pair` mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkCompletion {
    /// The number that was given with the work request.
    pub wr_id: u64,
    /// Status with which the request ended.
    pub status: CompletionStatus,
    /// Operation of the request.
    pub opcode: CompletionOpcode,
    /// Bytes that arrived: for receives (a WRITE with immediate included), READs and atomics.
    pub byte_len: u32,
    /// Immediate value that the peer sent.
    pub immediate: Option<u32>,
    /// The queue pair to which the request was posted, or on which the message arrived.
    pub queue_pair: QueuePairNumber,
    /// The peer's queue pair.
    pub source: QueuePairNumber,
}

/// A completion in the format of the queue: 28 bytes, so that two slots fit a cache line.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
pub(crate) struct CompletionEntry {
    wr_id: u64,
    byte_len: u32,
    /// Receive: the immediate. Send: the number of requests of the queue pair that were carried out
    /// up to this one; all of them free their slots when this entry is polled.
    extra: u32,
    queue_pair: u32,
    source: u32,
    status: CompletionStatus,
    opcode: CompletionOpcode,
    has_immediate: bool,
}

impl CompletionEntry {
    /// Makes an entry of the send side, after `executed` requests of its queue pair.
    #[inline]
    pub(crate) fn send(completion: WorkCompletion, executed: u32) -> Self {
        Self { extra: executed, has_immediate: false, ..Self::receive(completion) }
    }

    /// Makes an entry of the receive side.
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

    /// Returns the queue pair whose send slots are free once this entry is polled, and the number
    /// of its requests up to which they are.
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
