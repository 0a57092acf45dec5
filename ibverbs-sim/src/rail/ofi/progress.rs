#![allow(unsafe_code, reason = "packets that have arrived are read")]
//! Progress of a rail: what completions mean, and who has ended.

use std::{collections::VecDeque, sync::atomic::Ordering};

use super::{
    OfiRail, RECEIVE_CONTEXTS, SEND_CONTEXTS,
    abi::{self, Completion},
    fetches::Fetches,
    incoming::{Arrived, BUFFER_BYTES, Buffers, Position, Sequence},
    outgoing::Outgoing,
    packet::{Control, Envelope},
    queue::Taken,
};
use crate::{
    CompletionStatus, Rail, Wire,
    rail::{
        LossReason, RailEvent,
        frame::{self, Frame, Malformed},
    },
};

/// Completions that are taken at once.
const BATCH: usize = 32;
/// Most batches of a poll.
const BATCHES: usize = 8;
/// Completions of which the events are kept without an allocation.
pub(super) const KEPT_EVENTS: usize = 2 * BATCH * BATCHES;
/// Polls in vain after which the control connections are asked for peers that have ended.
pub(super) const POLLS_BETWEEN_CHECKS: u32 = 256;
/// Polls in vain between the end of a control connection and the loss of the peer, whose last packets may
/// be on their way.
const POLLS_BEFORE_LOSS: u32 = 500;

/// State of those who take completions.
pub(super) struct Inbox {
    pub(super) buffers: Buffers,
    pub(super) peers: Box<[Incoming]>,
    pub(super) fetches: Fetches,
    pub(super) arrived: VecDeque<Arrived>,
    pub(super) polls_in_vain: u32,
    /// Times in a row that the event of the provider was there and nothing came.
    pub(super) ready_in_vain: u32,
}

/// State of what comes from a process.
pub(super) struct Incoming {
    pub(super) sequence: Sequence,
    /// Set once the first packet has arrived.
    pub(super) has_greeted: bool,
    /// Set while this process has to send its first packet.
    pub(super) owes_greeting: bool,
    /// Polls in vain since the control connection has ended.
    pub(super) since_end: Option<u32>,
}

impl Inbox {
    pub(super) fn new(process: u32, outgoing: &Outgoing) -> Self {
        let incoming = |(peer, leads_to): (u32, bool)| Incoming {
            sequence: Sequence::default(),
            has_greeted: !leads_to,
            owes_greeting: leads_to && peer < process,
            since_end: None,
        };
        let peers = (0..).zip(outgoing.peers.iter().map(Option::is_some));
        Self {
            buffers: Buffers::new(),
            peers: peers.map(incoming).collect(),
            fetches: Fetches::new(outgoing.peers.len()),
            arrived: VecDeque::with_capacity(KEPT_EVENTS),
            polls_in_vain: 0,
            ready_in_vain: 0,
        }
    }
}

/// A packet that was received.
enum Received<'a> {
    /// The bytes lie in a buffer, at a position of the memory of all buffers.
    InBuffer { start: usize, bytes: &'a [u8] },
    /// The packet was kept, as it had arrived too early.
    Kept(Vec<u8>),
}

impl Received<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::InBuffer { bytes, .. } => bytes,
            Self::Kept(packet) => packet,
        }
    }
}

impl OfiRail {
    /// Takes completions, and goes on with all that is under way. Returns the number of completions.
    pub(super) fn advance(&self, inbox: &mut Inbox) -> usize {
        self.give_buffers(inbox);
        let mut taken = 0;
        let mut batch = [Completion::EMPTY; BATCH];
        for _ in 0..BATCHES {
            let count = match self.endpoint.queue().take(&mut batch) {
                Taken::Completions(count) => {
                    batch[..count].iter().for_each(|completion| self.complete(completion, inbox));
                    count
                }
                Taken::Failure(entry) => {
                    self.fail(&entry, inbox);
                    BATCH
                }
                Taken::Nothing => break,
            };
            taken += count;
            if count < BATCH {
                break;
            }
        }
        taken += self.advance_fetches(inbox);
        if taken > 0 {
            inbox.ready_in_vain = 0;
        }
        self.give_buffers(inbox);
        let packets = self.packets();
        if let Some(announcements) = &self.announcements {
            announcements.resume(&packets);
        }
        for (process, _) in self.live() {
            self.emulation.resume(process, &packets, &self.registrations);
            let incoming = &mut inbox.peers[process as usize];
            if incoming.owes_greeting {
                incoming.owes_greeting = !self.greet_process(process);
            }
        }
        taken
    }

    /// Sends the first packet to a process. Returns `false` if there is no room at present.
    fn greet_process(&self, process: u32) -> bool {
        let push =
            |address: &[u8]| self.packets().push_control(process, Control::Greeting(address));
        self.announcements.as_ref().map_or_else(|| push(&[]), |all| all.with_address(push))
    }

    pub(super) fn give_buffers(&self, inbox: &mut Inbox) {
        let registered = self.buffers_registered.as_ref();
        inbox.buffers.give(&self.endpoint, &self.buffers, registered, &self.contexts);
    }

    fn complete(&self, completion: &Completion, inbox: &mut Inbox) {
        let Some(number) = self.contexts.number(completion.op_context) else { return };
        if number >= SEND_CONTEXTS {
            self.outgoing.sent(number - SEND_CONTEXTS);
            return;
        }
        let buffer = number - RECEIVE_CONTEXTS;
        if completion.flags & abi::RECV != 0 && !completion.buf.is_null() {
            self.take_packet(completion, inbox);
        }
        if completion.flags & abi::MULTI_RECV != 0 {
            inbox.buffers.returned(buffer);
        }
    }

    /// Takes a packet that lies in a buffer.
    fn take_packet(&self, completion: &Completion, inbox: &mut Inbox) {
        let Some(start) = self.buffers.position(completion.buf, completion.len) else { return };
        // SAFETY: the packet has arrived, and its buffer is not given to the provider again before all
        // messages in it were passed on.
        let packet = unsafe { self.buffers.bytes(start, completion.len) };
        // Strangers may send as well.
        let Some((envelope, _)) = Envelope::read(packet).filter(|it| it.0.run == self.run) else {
            return;
        };
        let from = envelope.process;
        let Some(incoming) = inbox.peers.get_mut(from as usize) else { return };
        match incoming.sequence.position(envelope.sequence) {
            Position::Next => {
                self.accept(from, Received::InBuffer { start, bytes: packet }, inbox);
                while let Some(kept) = inbox.peers[from as usize].sequence.advance() {
                    self.accept(from, Received::Kept(kept), inbox);
                }
            }
            Position::Early => incoming.sequence.keep(envelope.sequence, packet.to_vec()),
            Position::Impossible => {
                let reason = LossReason::Malformed("a packet that it had sent before");
                self.lose(from, reason, inbox);
            }
        }
    }

    /// Carries out the next packet of a process, unless that is lost.
    fn accept(&self, from: u32, packet: Received<'_>, inbox: &mut Inbox) {
        if self.peer(from).is_err() {
            return;
        }
        if let Err(Malformed(what)) = self.carry_out(from, packet, inbox) {
            self.lose(from, LossReason::Malformed(what), inbox);
        }
    }

    fn carry_out(
        &self,
        from: u32,
        packet: Received<'_>,
        inbox: &mut Inbox,
    ) -> Result<(), Malformed> {
        let all = packet.bytes();
        let (_, rest) = Envelope::read(all).ok_or(Malformed("a packet without an envelope"))?;
        let (head, words, body) = frame::cut(rest)?;
        let head = &head[..words];
        if Control::is_one(head[0]) {
            return self.control(from, Control::decode(head, body)?, inbox);
        }
        let frame = Frame::decode(head, body)?;
        if let Frame::Message(bytes) = frame {
            let (before, length) = (all.len() - bytes.len(), bytes.len());
            inbox.arrived.push_back(match packet {
                Received::InBuffer { start, .. } => {
                    inbox.buffers.keep(start / BUFFER_BYTES);
                    Arrived::Message { from, start: start + before, length }
                }
                Received::Kept(packet) => Arrived::Kept { from, packet, start: before },
            });
            return Ok(());
        }
        let arrived = &mut inbox.arrived;
        let mut sink = |event: RailEvent<'_>| arrived.push_back(Arrived::event(event));
        self.emulation.receive(from, frame, &self.packets(), &self.registrations, &mut sink)
    }

    fn control(&self, from: u32, control: Control<'_>, inbox: &mut Inbox) -> Result<(), Malformed> {
        let incoming = &mut inbox.peers[from as usize];
        let announcements =
            || self.announcements.as_ref().ok_or(Malformed("a frame of another kind of provider"));
        match control {
            Control::Greeting(address) if !incoming.has_greeted => {
                inbox.fetches.expose(from, address);
                incoming.has_greeted = true;
                incoming.owes_greeting = from > self.process;
                Ok(())
            }
            Control::Greeting(_) => Err(Malformed("a second first frame")),
            Control::Responder(address) => {
                inbox.fetches.expose(from, address);
                Ok(())
            }
            Control::Parting => {
                self.lose(from, LossReason::Ended, inbox);
                Ok(())
            }
            Control::Announcement(announcement) => self.fetch(from, announcement, inbox),
            Control::Answer(answer) => self.fetch_answer(from, answer, inbox),
            Control::ReadRefused { read } => self.end_read(from, read, inbox),
            Control::Read(read) if read.length > 0 => {
                announcements()?.asked(from, read, &self.means())
            }
            Control::Read(_) => Err(Malformed("a read of nothing")),
            Control::Fetched { number, status } => {
                announcements()?.answered(from, number, status, &self.packets())
            }
            Control::Broken { number } => announcements()?.broken(from, number, &self.packets()),
            Control::Unread { number } => {
                if !announcements()?.unread(from, number, &self.means())? {
                    Rail::give_up(self, from);
                }
                Ok(())
            }
        }
    }

    /// Notes that an operation has failed.
    fn fail(&self, entry: &abi::ErrorEntry, inbox: &mut Inbox) {
        let Some(number) = self.contexts.number(entry.op_context) else { return };
        if number >= SEND_CONTEXTS {
            // Packets behind this one would be out of order.
            let to = self.outgoing.sent(number - SEND_CONTEXTS);
            if let Some(peer) = self.outgoing.peer(to) {
                peer.fail();
            }
        } else if entry.err != abi::CANCELED || entry.flags & abi::MULTI_RECV != 0 {
            inbox.buffers.returned(number - RECEIVE_CONTEXTS);
        }
    }

    /// Gives a process up.
    fn lose(&self, process: u32, reason: LossReason, inbox: &mut Inbox) {
        let Some(peer) = self.outgoing.peer(process) else { return };
        if peer.lose() {
            let Inbox { fetches, arrived, .. } = inbox;
            let status = CompletionStatus::RetryExceeded;
            let mut lost = Vec::new();
            // Before anybody learns of the loss, and gives memory back.
            fetches.lose(process, arrived, |context| lost.push(context));
            if let Some(announcements) = &self.announcements {
                announcements.take_ended(|context, status| {
                    arrived.push_back(Arrived::Event(RailEvent::Completed { context, status }));
                });
                announcements.lose(process, &self.packets(), |context| lost.push(context));
            }
            let lost = lost.into_iter().map(|context| RailEvent::Completed { context, status });
            arrived.extend(lost.map(Arrived::Event));
            self.emulation.lose(process, reason, &mut |event| {
                arrived.push_back(Arrived::event(event));
            });
        }
    }

    /// Gives up processes that have ended, or that others have given up.
    pub(super) fn check_ends(&self, inbox: &mut Inbox, is_in_vain: bool) {
        let asks = inbox.polls_in_vain >= POLLS_BETWEEN_CHECKS;
        if asks {
            inbox.polls_in_vain = 0;
            self.control.poll(&mut |_, _| {});
        }
        for (process, peer) in self.live() {
            let incoming = &mut inbox.peers[process as usize];
            if asks && self.control.is_lost(process) {
                incoming.since_end.get_or_insert(0);
            }
            let has_ended = incoming.since_end.as_mut().is_some_and(|polls| {
                *polls += u32::from(is_in_vain);
                *polls > POLLS_BEFORE_LOSS
            });
            if self.silent[process as usize].load(Ordering::Acquire) {
                self.lose(process, LossReason::Silent, inbox);
            } else if has_ended || peer.has_failed() {
                self.lose(process, LossReason::Ended, inbox);
            }
        }
    }
}
