//! Send requests and copies of their messages.

use std::sync::atomic::Ordering;

use super::memory::Memory;
use super::world::RankState;
use crate::error::Error;
use crate::matching::Key;
use crate::status::Status;
use crate::ticket::Ticket;
use crate::transport::SendMode;

/// A message to send, with its completion.
pub(super) struct SendRequest {
    pub(super) key: Key,
    pub(super) mode: SendMode,
    pub(super) bytes: SendBuffer,
    /// Ticket of a send whose caller knows it as under way.
    pub(super) ticket: Option<Ticket>,
}

/// Bytes of a message to send.
pub(super) enum SendBuffer {
    /// Bytes in the buffer of the caller.
    Borrowed(Memory),
    /// Copy of the bytes.
    Copied(Vec<u8>),
}

/// Outcome of the attempt to send a message as a short one.
pub(super) enum ShortSend {
    /// Not sent: the message is too long, or the peer has no room.
    NotSent,
    /// Sent, or added to a batch that another request writes.
    Sent,
    /// Added to a batch as its first message: the request of this message writes the batch.
    BatchOpened,
    /// Sent unbatched, because the polling task sleeps: the caller wakes it, so that later messages
    /// can be batched.
    Alone,
}

impl SendRequest {
    pub(super) fn status(&self) -> Status {
        self.key.status(self.bytes.length())
    }
}

impl SendBuffer {
    #[inline]
    pub(super) fn length(&self) -> u64 {
        match self {
            SendBuffer::Borrowed(memory) => memory.bytes(),
            SendBuffer::Copied(bytes) => bytes.len() as u64,
        }
    }
}

/// Copies the bytes of a message into a contiguous vector.
pub(super) fn pack(memory: &Memory) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(memory.bytes() as usize);
    memory.append_to(&mut bytes);
    bytes
}

/// Copies a message, within the limit of the rank for copies.
///
/// **Errors**: the limit is reached.
pub(super) fn copy_within_limit(rank: &RankState, memory: &Memory) -> Result<Vec<u8>, Error> {
    let (bytes, limit) = (memory.bytes(), rank.buffer_limit);
    let before = rank.kept.fetch_add(bytes, Ordering::Relaxed);
    if before.saturating_add(bytes) > limit {
        rank.kept.fetch_sub(bytes, Ordering::Relaxed);
        return Err(Error::NoBufferSpace { bytes, room: limit.saturating_sub(before) });
    }
    Ok(pack(memory))
}
