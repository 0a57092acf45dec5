#![allow(unsafe_code, reason = "packets arrive in memory of this crate")]
//! Packets of peers.
//!
//! Packets arrive in [`BUFFERS`] buffers, each of which takes one packet behind the other until it is full.
//! A buffer is given to the provider again once that has returned it, and all its messages were
//! passed on.

use std::collections::BTreeMap;

use super::{
    RECEIVE_CONTEXTS,
    endpoint::{Endpoint, Registered, Started},
    memory::{Contexts, PacketMemory},
};
use crate::RailEvent;

/// Buffers for what arrives.
pub(super) const BUFFERS: usize = 4;
/// Bytes of a buffer.
pub(super) const BUFFER_BYTES: usize = 1 << 20;
/// Most packets of a peer that are kept until an earlier one has arrived.
const MAX_EARLY: u32 = 1024;

/// Memory in which packets arrive.
pub(super) struct Buffers {
    states: [BufferState; BUFFERS],
}

#[derive(Clone, Copy, Default)]
struct BufferState {
    /// Set while the provider has the buffer.
    is_given: bool,
    /// Messages in the buffer that were not passed on.
    messages: u32,
}

impl Buffers {
    pub(super) fn new() -> Self {
        Self { states: [BufferState::default(); BUFFERS] }
    }

    /// Notes that a buffer has a message that is passed on later.
    pub(super) fn keep(&mut self, buffer: usize) {
        self.states[buffer].messages += 1;
    }

    /// Notes that messages of a buffer were passed on.
    pub(super) fn passed_on(&mut self, buffer: usize, messages: u32) {
        self.states[buffer].messages -= messages;
    }

    /// Notes that the provider has returned a buffer.
    pub(super) fn returned(&mut self, buffer: usize) {
        self.states[buffer].is_given = false;
    }

    /// Gives the provider all buffers that nobody uses.
    pub(super) fn give(
        &mut self,
        endpoint: &Endpoint,
        memory: &PacketMemory,
        registered: Option<&Registered>,
        contexts: &Contexts,
    ) {
        for (buffer, state) in self.states.iter_mut().enumerate() {
            if state.is_given || state.messages > 0 {
                continue;
            }
            let room = memory.part(buffer * BUFFER_BYTES, BUFFER_BYTES);
            let context = contexts.pointer(RECEIVE_CONTEXTS + buffer);
            // SAFETY: nobody uses the buffer and its context until the provider has returned them,
            // except for packets that have arrived.
            let started = unsafe { endpoint.receive(room, registered, context) };
            state.is_given = started == Started::Yes;
        }
    }
}

/// Something that has arrived, and was not passed on.
pub(super) enum Arrived {
    /// A message, at a position of the memory of buffers.
    Message { from: u32, start: usize, length: usize },
    /// A message that had arrived too early: a packet, and the start of the message in it.
    Kept { from: u32, packet: Vec<u8>, start: usize },
    /// An event without bytes.
    Event(RailEvent<'static>),
}

impl Arrived {
    /// Returns an event without bytes.
    pub(super) fn event(event: RailEvent<'_>) -> Self {
        Self::Event(match event {
            RailEvent::Message { from, .. } => RailEvent::Message { from, bytes: &[] },
            RailEvent::Notice { from, notice } => RailEvent::Notice { from, notice },
            RailEvent::Completed { context, status } => RailEvent::Completed { context, status },
            RailEvent::Lost { process, reason } => RailEvent::Lost { process, reason },
        })
    }
}

/// Order of the packets of a peer.
#[derive(Default)]
pub(super) struct Sequence {
    /// Number of the next packet.
    next: u32,
    /// Packets that have arrived before earlier ones.
    early: BTreeMap<u32, Vec<u8>>,
}

/// Position of a packet in the order of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    Next,
    Early,
    /// No packet of this number can come now.
    Impossible,
}

impl Sequence {
    /// Returns the position of a packet with this number.
    pub(super) fn position(&self, number: u32) -> Position {
        match number.wrapping_sub(self.next) {
            0 => Position::Next,
            ahead if ahead <= MAX_EARLY && !self.early.contains_key(&number) => Position::Early,
            _ => Position::Impossible,
        }
    }

    /// Keeps a packet that is early.
    pub(super) fn keep(&mut self, number: u32, packet: Vec<u8>) {
        self.early.insert(number, packet);
    }

    /// Goes on to the next packet, and returns it if it has arrived before.
    pub(super) fn advance(&mut self) -> Option<Vec<u8>> {
        self.next = self.next.wrapping_add(1);
        if self.early.is_empty() { None } else { self.early.remove(&self.next) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_put_in_order_also_where_their_numbers_begin_again() {
        let mut sequence = Sequence { next: u32::MAX, early: BTreeMap::new() };
        assert_eq!(sequence.position(0), Position::Early);
        sequence.keep(0, vec![0]);
        assert_eq!(sequence.position(0), Position::Impossible);
        assert_eq!(sequence.position(u32::MAX - 1), Position::Impossible);
        assert_eq!(sequence.position(u32::MAX.wrapping_add(MAX_EARLY)), Position::Early);
        assert_eq!(sequence.position(u32::MAX.wrapping_add(MAX_EARLY + 1)), Position::Impossible);
        assert_eq!(sequence.position(u32::MAX), Position::Next);
        assert_eq!(sequence.advance(), Some(vec![0]));
        assert_eq!(sequence.advance(), None);
        assert_eq!(sequence.position(1), Position::Next);
    }
}
