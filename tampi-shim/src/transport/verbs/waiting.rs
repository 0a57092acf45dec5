//! Receives and unexpected messages that are not matched yet.
#![allow(unsafe_code, reason = "ends registrations of receives that were taken")]

use super::cell::{INLINE, RemoteLayout};
use super::memory::{Memory, Registered};
use crate::error::Error;
use crate::matching::Key;
use crate::rank::WorldRank;
use crate::ticket::{PackedResult, Ticket};

/// A receive that no message is matched to.
pub(super) struct Receive {
    pub(super) memory: Memory,
    pub(super) ticket: Ticket,
    pub(super) rtr: Option<Box<SentRtr>>,
}

/// RTR that was sent for a receive: the registration of its buffer, and the source.
pub(super) struct SentRtr {
    pub(super) registered: Registered,
    pub(super) peer: WorldRank,
}

impl Receive {
    pub(super) fn new(memory: Memory, ticket: Ticket) -> Self {
        Receive { memory, ticket, rtr: None }
    }

    /// Returns `true` if an RTR of the receive is valid at this peer.
    pub(super) fn has_rtr_at(&self, peer: WorldRank) -> bool {
        self.rtr.as_ref().is_some_and(|rtr| rtr.peer == peer)
    }

    /// Ends the registration of an RTR that is not in the table of the source any more.
    #[inline]
    pub(super) fn end_rtr(&mut self) {
        if let Some(rtr) = self.rtr.take() {
            // SAFETY: the source writes to the buffer only between its `RtrMatched` and its
            // `FinReceive`, and it has taken the RTR out of its table before it sent the message or
            // control message that led here.
            unsafe { rtr.registered.end_unused() };
        }
    }
}

/// A message that no receive is matched to, from the peer of ring number `incoming`.
pub(super) struct UnexpectedMessage {
    pub(super) incoming: usize,
    pub(super) content: Content,
}

/// Bytes of an unexpected message, or the memory at the peer that holds them.
pub(super) enum Content {
    Short {
        bytes: [u8; INLINE],
        length: usize,
    },
    /// Eager message of several cells, with the number of the send if that is synchronous.
    Long(Vec<u8>, Option<u64>),
    /// RTS, with the number of the send.
    Rts(RemoteLayout, u64),
}

impl UnexpectedMessage {
    pub(super) fn length(&self) -> u64 {
        match &self.content {
            Content::Short { length, .. } => *length as u64,
            Content::Long(bytes, _) => bytes.len() as u64,
            Content::Rts(remote, _) => remote.bytes(),
        }
    }
}

/// Copies a message into the memory of a receive, if it fits. Returns the result of the receive.
#[inline]
pub(super) fn deliver(key: &Key, parts: &[&[u8]], memory: &mut Memory) -> PackedResult {
    let sent = parts.iter().map(|part| part.len() as u64).sum();
    fits(key, sent, memory)?;
    memory.fill(parts);
    Ok(key.status(sent).into())
}

/// Checks that a message of `sent` bytes fits.
#[inline]
pub(super) fn fits(key: &Key, sent: u64, memory: &Memory) -> Result<(), Box<Error>> {
    let room = memory.bytes();
    if sent > room { Err(truncated(key, sent, room)) } else { Ok(()) }
}

#[cold]
fn truncated(key: &Key, sent: u64, room: u64) -> Box<Error> {
    Box::new(Error::Truncated { source_rank: key.source, tag: key.tag, sent, room })
}
