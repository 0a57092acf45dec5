//! Receives and messages that wait for each other.
#![allow(unsafe_code, reason = "ends registrations of receives that were taken")]

use super::cell::{INLINE, Place};
use super::memory::{Memory, Registered};
use crate::error::Error;
use crate::matching::Key;
use crate::rank::WorldRank;
use crate::ticket::{Ended, Ticket};

/// A receive that waits.
pub(super) struct Receive {
    pub(super) memory: Memory,
    pub(super) ticket: Ticket,
    pub(super) offered: Option<Box<Offered>>,
}

/// What a receive was offered with, and to whom.
pub(super) struct Offered {
    pub(super) registered: Registered,
    pub(super) peer: WorldRank,
}

impl Receive {
    pub(super) fn new(memory: Memory, ticket: Ticket) -> Self {
        Receive { memory, ticket, offered: None }
    }

    /// Returns whether it was offered to this peer, and the offer has not ended.
    pub(super) fn is_offered_to(&self, peer: WorldRank) -> bool {
        self.offered.as_ref().is_some_and(|offered| offered.peer == peer)
    }

    /// Ends the offer of a receive that the source has taken back, used up or passed over.
    #[inline]
    pub(super) fn end_offer(&mut self) {
        if let Some(offered) = self.offered.take() {
            // SAFETY: the source writes to an offered buffer only between the cells that claim and
            // fill it, and it has taken the offer out of its list before it sent the message or
            // notice that led here.
            unsafe { offered.registered.end_unused() };
        }
    }
}

/// A message that waits, from the peer of ring number `incoming`.
pub(super) struct Message {
    pub(super) incoming: usize,
    pub(super) content: Content,
}

/// The bytes of a message, or where they are.
pub(super) enum Content {
    Short {
        bytes: [u8; INLINE],
        length: usize,
    },
    /// With the number of the send if that is synchronous.
    Long(Vec<u8>, Option<u64>),
    /// With the number of the send.
    Announced(Place, u64),
}

impl Message {
    pub(super) fn length(&self) -> u64 {
        match &self.content {
            Content::Short { length, .. } => *length as u64,
            Content::Long(bytes, _) => bytes.len() as u64,
            Content::Announced(place, _) => place.bytes(),
        }
    }
}

/// Copies a message to where a receive wants it, if it fits, which ends the receive.
#[inline]
pub(super) fn deliver(key: &Key, parts: &[&[u8]], memory: &mut Memory) -> Ended {
    let sent = parts.iter().map(|part| part.len() as u64).sum();
    fits(key, sent, memory)?;
    memory.fill(parts);
    Ok(key.status(sent).into())
}

/// Whether a message of so many bytes fits.
#[inline]
pub(super) fn fits(key: &Key, sent: u64, memory: &Memory) -> Result<(), Box<Error>> {
    let room = memory.bytes();
    if sent > room { Err(truncated(key, sent, room)) } else { Ok(()) }
}

#[cold]
fn truncated(key: &Key, sent: u64, room: u64) -> Box<Error> {
    Box::new(Error::Truncated { source_rank: key.source, tag: key.tag, sent, room })
}
