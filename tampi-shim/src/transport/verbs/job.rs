//! Messages on their way out, and copies of them.

use std::sync::atomic::Ordering;

use super::memory::Memory;
use super::world::RankState;
use crate::error::Error;
use crate::matching::Key;
use crate::status::Status;
use crate::ticket::Ticket;
use crate::transport::SendMode;

/// A message to send.
pub(super) struct Job {
    pub(super) key: Key,
    pub(super) mode: SendMode,
    pub(super) bytes: Source,
    /// Of a send that its caller knows to be under way.
    pub(super) ticket: Option<Ticket>,
}

/// Where the bytes of a message are.
pub(super) enum Source {
    /// In the buffer of the caller.
    Lent(Memory),
    /// In a copy.
    Kept(Vec<u8>),
}

/// What became of a message that may be short.
pub(super) enum Short {
    /// It is to be sent as any other.
    TooLong,
    /// It is written, or will be with others that are collected.
    Sent,
    /// It is the first that was collected: its sender sees to it that all are written.
    Collected,
    /// It is written, alone because the polling task sleeps: its sender wakes that, so that those
    /// after it can be collected.
    Alone,
}

impl Job {
    pub(super) fn status(&self) -> Status {
        self.key.status(self.bytes.length())
    }
}

impl Source {
    #[inline]
    pub(super) fn length(&self) -> u64 {
        match self {
            Source::Lent(memory) => memory.bytes(),
            Source::Kept(bytes) => bytes.len() as u64,
        }
    }
}

/// The bytes of a message in one piece.
pub(super) fn pack(memory: &Memory) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(memory.bytes() as usize);
    memory.append_to(&mut bytes);
    bytes
}

/// A copy of a message, within the limit of the rank.
///
/// **Errors**: no room for it.
pub(super) fn keep(rank: &RankState, memory: &Memory) -> Result<Vec<u8>, Error> {
    let (bytes, limit) = (memory.bytes(), rank.buffer_limit);
    let before = rank.kept.fetch_add(bytes, Ordering::Relaxed);
    if before.saturating_add(bytes) > limit {
        rank.kept.fetch_sub(bytes, Ordering::Relaxed);
        return Err(Error::NoBufferSpace { bytes, room: limit.saturating_sub(before) });
    }
    Ok(pack(memory))
}
