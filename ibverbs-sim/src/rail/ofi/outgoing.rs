#![allow(unsafe_code, reason = "packets are sent from memory of this crate")]
//! Packets to peers.
//!
//! A short packet is taken by the provider within the call. Another one is written to one of
//! [`SLOTS`] slots, of which a peer has at most [`SLOTS_EACH`], so that one that takes nothing does not
//! stop what is sent to others.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use talpf_primitives::Mutex;

use super::{
    EAGER_BYTES, SEND_CONTEXTS, abi,
    endpoint::{Endpoint, Registered, Started},
    memory::{Contexts, PacketMemory},
    packet::{Control, Envelope, MAX_HEAD_BYTES},
};
use crate::rail::{emulation::Path, frame::Frame};

/// Slots for packets that are under way.
pub(super) const SLOTS: usize = 64;
/// Most slots of a peer.
const SLOTS_EACH: u32 = 24;
/// Bytes of a slot.
pub(super) const SLOT_BYTES: usize = EAGER_BYTES + MAX_HEAD_BYTES;
/// Most bytes of a packet that the provider takes within the call.
const MAX_INJECTED: usize = 256;

/// Packets that this process sends.
pub(super) struct Outgoing {
    /// Registration of the slots, where the provider needs one. Closed before the endpoint.
    registered: Option<Registered>,
    pub(super) peers: Box<[Option<Peer>]>,
    run: u64,
    process: u32,
    free: Mutex<Vec<u32>>,
    /// Process that each slot is for.
    to: Box<[AtomicU32]>,
    memory: PacketMemory,
}

/// A process that packets go to.
pub(super) struct Peer {
    address: abi::Address,
    /// Number of the next packet. Locked while one is sent, so that they are sent in order.
    next: Mutex<u32>,
    slots: AtomicU32,
    /// Set once the provider has refused a packet for good.
    has_failed: AtomicBool,
    is_lost: AtomicBool,
}

impl Peer {
    pub(super) fn new(address: abi::Address) -> Self {
        Self {
            address,
            next: Mutex::new(0),
            slots: AtomicU32::new(0),
            has_failed: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
        }
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Marks the peer as lost; returns `true` if it was not.
    pub(super) fn lose(&self) -> bool {
        !self.is_lost.swap(true, Ordering::AcqRel)
    }

    /// Returns `true` if packets to the peer are under way.
    pub(super) fn has_unsent(&self) -> bool {
        self.slots.load(Ordering::Relaxed) > 0
    }

    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    pub(super) fn fail(&self) {
        self.has_failed.store(true, Ordering::Release);
    }
}

/// The path of packets to peers: what is sent, and by which endpoint.
#[derive(Clone, Copy)]
pub(super) struct Packets<'a> {
    pub(super) outgoing: &'a Outgoing,
    pub(super) endpoint: &'a Endpoint,
    pub(super) contexts: &'a Contexts,
}

impl Outgoing {
    pub(super) fn new(
        run: u64,
        process: u32,
        peers: Box<[Option<Peer>]>,
        memory: PacketMemory,
        registered: Option<Registered>,
    ) -> Self {
        let free = Mutex::new((0..SLOTS as u32).rev().collect());
        let to = (0..SLOTS).map(|_| AtomicU32::new(0)).collect();
        Self { registered, peers, run, process, free, to, memory }
    }

    /// Returns a peer, lost or not.
    pub(super) fn peer(&self, process: u32) -> Option<&Peer> {
        self.peers.get(process as usize)?.as_ref()
    }

    /// Returns `true` if packets are under way that the provider has not sent.
    pub(super) fn has_unsent(&self) -> bool {
        self.free.lock().len() < SLOTS
    }

    /// Takes the slot of a packet back that was sent, or has failed. Returns the process it was for.
    pub(super) fn sent(&self, slot: usize) -> u32 {
        let to = self.to[slot].load(Ordering::Relaxed);
        if let Some(peer) = self.peer(to) {
            peer.slots.fetch_sub(1, Ordering::Relaxed);
        }
        self.free.lock().push(slot as u32);
        to
    }

    fn take_slot(&self, to: u32, peer: &Peer) -> Option<usize> {
        if peer.slots.load(Ordering::Relaxed) >= SLOTS_EACH {
            return None;
        }
        let slot = self.free.lock().pop()? as usize;
        // Only who sends to the peer, under its lock, counts up.
        peer.slots.fetch_add(1, Ordering::Relaxed);
        self.to[slot].store(to, Ordering::Relaxed);
        Some(slot)
    }
}

impl Packets<'_> {
    /// Sends a frame of control; returns `false` if there is no room at present.
    pub(super) fn push_control(&self, to: u32, control: Control<'_>) -> bool {
        let (head, words, body) = control.encode();
        // A slot says when the packet, and all before it, have left.
        self.send(to, &head[..words], body, control == Control::Parting)
    }

    /// Sends the words of a head and a body. Returns `false` if there is no room at present.
    fn send(&self, to: u32, head: &[u64], body: &[u8], needs_slot: bool) -> bool {
        let Some(peer) = self.outgoing.peer(to).filter(|peer| !peer.has_failed()) else {
            return false;
        };
        let mut next = peer.next.lock();
        let envelope =
            Envelope { run: self.outgoing.run, process: self.outgoing.process, sequence: *next };
        let mut bytes = [0; MAX_HEAD_BYTES];
        let length = envelope.write(head, &mut bytes);
        let (head, length) = (&bytes[..length], length + body.len());
        let started = if length <= self.endpoint.inject_bytes.min(MAX_INJECTED) && !needs_slot {
            let mut packet = [0; MAX_INJECTED];
            packet[..head.len()].copy_from_slice(head);
            packet[head.len()..length].copy_from_slice(body);
            self.endpoint.inject(peer.address, &packet[..length])
        } else {
            self.send_from_slot(to, peer, [head, body])
        };
        match started {
            Started::Yes => *next = next.wrapping_add(1),
            Started::NoRoom => {}
            Started::Failed(_) => peer.fail(),
        }
        started == Started::Yes
    }

    fn send_from_slot(&self, to: u32, peer: &Peer, packet: [&[u8]; 2]) -> Started {
        let outgoing = self.outgoing;
        let Some(slot) = outgoing.take_slot(to, peer) else { return Started::NoRoom };
        let start = slot * SLOT_BYTES;
        // SAFETY: the slot was free, so nobody else uses it.
        unsafe { outgoing.memory.write(start, packet) };
        let bytes = outgoing.memory.part(start, packet[0].len() + packet[1].len());
        let context = self.contexts.pointer(SEND_CONTEXTS + slot);
        let registered = outgoing.registered.as_ref();
        // SAFETY: slot and context are free, and stay in use until the completion.
        let started = unsafe { self.endpoint.send(peer.address, bytes, registered, context) };
        if started != Started::Yes {
            outgoing.sent(slot);
        }
        started
    }
}

impl Path for Packets<'_> {
    const PIECE: usize = EAGER_BYTES;

    fn push(&self, to: u32, frame: &Frame<'_>) -> bool {
        let encoded = frame.encode();
        self.send(to, encoded.head(), encoded.body, false)
    }
}
