#![allow(unsafe_code, reason = "memory is registered for reads of peers")]
//! Announcements: bytes of this process that peers read, those of long writes and of the answers to long reads.
//!
//! Both are *transfers*. The peer gets an *announcement* of the memory that has the bytes, reads them to where they
//! belong, and answers. So a provider writes to no memory that its owner has not passed to it.
//!
//! A peer may read the memory until it has answered. Whoever takes memory back before, since a write is
//! cancelled, a registration ends or the peer is lost, *revokes* all announcements: the [`Responder`] is closed, so that
//! nobody reads anything of this process. All peers get the address of a new one; they answer that they could not
//! read what was announced before, which is announced again.
//!
//! **Threads**: who takes both locks takes `state` first. The responder is polled without that.

use std::{
    os::fd::OwnedFd,
    sync::atomic::{AtomicBool, Ordering},
};

use parking_lot::RwLock;
use talpf_primitives::Mutex;

use super::{
    OfiError,
    abi::Completion,
    endpoint::Endpoint,
    outgoing::Packets,
    packet::{Announcement, Control, ReadAnswer, ReadRequest},
    responder::Responder,
    transfers::{LongWrite, Purpose, Transfers, Unread, Unsent},
};
use crate::{
    Access, CompletionStatus,
    rail::{
        RailError,
        emulation::WINDOW,
        frame::{KeyClaim, Malformed},
        registrations::{KeyNumber, Registrations},
    },
    random::Random,
};

/// Most announcements to a process that it has not answered.
pub(super) const MOST: usize = 2 * WINDOW;
/// Attempts to register memory under a key that is in use.
const ATTEMPTS: usize = 8;

/// Announcements of this process.
pub(super) struct Announcements {
    state: Mutex<State>,
    /// `None` if it could not be opened again.
    responder: RwLock<Option<Responder>>,
    /// Readable with the queue of the responder.
    sleep_on: OwnedFd,
    /// Set while peers may read something.
    are_announced: AtomicBool,
    has_unsent: AtomicBool,
    has_ended: AtomicBool,
}

struct State {
    transfers: Transfers,
    keys: Random,
}

/// Parts of the rail that announcements need.
#[derive(Clone, Copy)]
pub(super) struct Means<'a> {
    pub(super) packets: Packets<'a>,
    pub(super) registrations: &'a Registrations,
}

impl Announcements {
    /// Opens a responder. `sleep_on` becomes readable with its queue. Keys follow from the seed.
    pub(super) fn new(
        endpoint: &Endpoint,
        seed: u64,
        processes: usize,
        sleep_on: OwnedFd,
    ) -> Result<Self, OfiError> {
        let responder = Responder::open(endpoint, &sleep_on)?;
        let state = State { transfers: Transfers::new(processes), keys: Random::new(seed) };
        Ok(Self {
            state: Mutex::new(state),
            responder: RwLock::new(Some(responder)),
            sleep_on,
            are_announced: AtomicBool::new(false),
            has_unsent: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
        })
    }

    /// Passes the responder to `action`, if there is one.
    pub(super) fn with_responder<R>(&self, action: impl FnOnce(&Responder) -> R) -> Option<R> {
        self.responder.read().as_ref().map(action)
    }

    /// Passes the address of the responder to `action`; an empty one if there is none.
    pub(super) fn with_address<R>(&self, action: impl FnOnce(&[u8]) -> R) -> R {
        action(self.responder.read().as_ref().map_or(&[], Responder::address))
    }

    /// Gets on with the reads of peers. `has_slept` if something may have arrived though nothing is announced.
    pub(super) fn respond(&self, has_slept: bool) {
        if has_slept || self.are_announced.load(Ordering::Relaxed) {
            // Reads of peers have no completions here, and peers say themselves which have failed.
            self.with_responder(|responder| responder.queue().take(&mut [Completion::EMPTY; 1]));
        }
    }

    /// Posts a write. `None` if its bytes cannot be announced, or its local key is not registered.
    ///
    /// # Safety
    ///
    /// The memory of the write must be valid for reads, and be changed by nobody, until the write has ended,
    /// or [`cancel`](Self::cancel), or [`close`](Self::close) with its local key, has returned.
    pub(super) unsafe fn post(
        &self,
        to: u32,
        write: LongWrite,
        means: &Means<'_>,
    ) -> Option<Result<(), RailError>> {
        let mut state = self.state.lock();
        if means.packets.outgoing.peer(to).is_none_or(|peer| peer.is_lost()) {
            return Some(Err(RailError::Lost { process: to }));
        }
        if write.local_key.is_some_and(|key| !means.registrations.contains(key)) {
            return None;
        }
        if state.transfers.count(to, |purpose| !matches!(purpose, Purpose::Read(_))) == WINDOW {
            return Some(Err(RailError::NoRoom { process: to }));
        }
        self.announce(&mut state, to, Purpose::Write(write), means).then_some(Ok(()))
    }

    /// Takes a read of a peer.
    pub(super) fn asked(
        &self,
        from: u32,
        read: ReadRequest,
        means: &Means<'_>,
    ) -> Result<(), Malformed> {
        let mut state = self.state.lock();
        if state.transfers.count(from, |purpose| matches!(purpose, Purpose::Read(_))) == WINDOW {
            return Err(Malformed("more reads than it may have under way"));
        }
        self.answer_read(&mut state, from, read, means);
        Ok(())
    }

    /// Announces the answer to a read, or refuses it.
    fn answer_read(&self, state: &mut State, from: u32, read: ReadRequest, means: &Means<'_>) {
        if !self.announce(state, from, Purpose::Read(read), means) {
            let refusal = Unsent::Frame(Control::ReadRefused { read: read.number });
            state.transfers.unsent.push_back((from, refusal));
            self.note(state, &means.packets);
        }
    }

    /// Announces a transfer. Returns `false` if its bytes cannot be read, or not by the claim of a read.
    fn announce(&self, state: &mut State, to: u32, purpose: Purpose, means: &Means<'_>) -> bool {
        let memory = match &purpose {
            Purpose::Write(write) => Some(write.local),
            Purpose::Read(ReadRequest { key, offset, permit, length, .. }) => {
                let claim = KeyClaim { key: *key, offset: *offset };
                let length = *length as usize;
                means.registrations.claimed(claim, *permit, length, Access::REMOTE_READ)
            }
            Purpose::Cancelled => None,
        };
        let Some(memory) = memory else { return false };
        let register = |responder: &Responder| {
            (0..ATTEMPTS).find_map(|_| {
                let key = state.keys.next_u64();
                // SAFETY: the memory of a write stays until that has ended, was cancelled, or its key was closed;
                // that of a read until its keys were. All of these wait for the peer, or close the responder.
                unsafe { responder.register(means.packets.endpoint, memory, key) }.ok()
            })
        };
        let Some((registered, source)) = self.with_responder(register).flatten() else {
            return false;
        };
        let number = state.transfers.free(to);
        let frame = match &purpose {
            Purpose::Write(write) => {
                let (length, target) = (memory.len() as u32, write.target);
                Control::Announcement(Announcement { number, length, source, target })
            }
            Purpose::Read(ReadRequest { number: read, .. }) => {
                Control::Answer(ReadAnswer { number, read: *read, source })
            }
            Purpose::Cancelled => return false,
        };
        state.transfers.announce(to, number, purpose, registered);
        state.transfers.unsent.push_back((to, Unsent::Frame(frame)));
        self.note(state, &means.packets);
        true
    }

    /// Closes the responder, so that no peer reads what was announced, and opens another one.
    fn revoke(&self, state: &mut State, packets: &Packets<'_>) {
        state.transfers.revoke();
        let mut responder = self.responder.write();
        *responder = None;
        *responder = Responder::open(packets.endpoint, &self.sleep_on).ok();
        drop(responder);
        let unsent = &mut state.transfers.unsent;
        // What was announced before is read, in vain, by the address that peers have.
        unsent.retain(|(_, frame)| !matches!(frame, Unsent::Responder));
        let peers = (0..).zip(&packets.outgoing.peers);
        let live = peers.filter(|(_, peer)| peer.as_ref().is_some_and(|peer| !peer.is_lost()));
        unsent.extend(live.map(|(process, _)| (process, Unsent::Responder)));
    }

    /// Sends frames for which there was no room.
    pub(super) fn resume(&self, packets: &Packets<'_>) {
        if self.has_unsent() {
            self.note(&mut self.state.lock(), packets);
        }
    }

    /// Returns `true` if there was no room for a frame.
    pub(super) fn has_unsent(&self) -> bool {
        self.has_unsent.load(Ordering::Relaxed)
    }

    /// Returns `true` if a transfer to a process has not ended.
    pub(super) fn has_under_way(&self, to: u32) -> bool {
        self.state.lock().transfers.count(to, |_| true) > 0
    }

    /// Sends frames, and notes for those who poll what there is.
    fn note(&self, state: &mut State, packets: &Packets<'_>) {
        let transfers = &mut state.transfers;
        // Frames to one peer stay in order.
        let mut full = Vec::new();
        transfers.unsent.retain(|&(to, frame)| {
            let is_kept = full.contains(&to)
                || !match frame {
                    Unsent::Responder => self.with_address(|address| {
                        packets.push_control(to, Control::Responder(address))
                    }),
                    Unsent::Frame(frame) => packets.push_control(to, frame),
                };
            if is_kept {
                full.push(to);
            }
            is_kept
        });
        self.has_unsent.store(!transfers.unsent.is_empty(), Ordering::Relaxed);
        self.has_ended.store(!transfers.ended.is_empty(), Ordering::Relaxed);
        self.are_announced.store(transfers.are_announced(), Ordering::Relaxed);
    }

    /// Takes the answer to an announcement.
    pub(super) fn answered(
        &self,
        from: u32,
        number: u32,
        status: CompletionStatus,
        packets: &Packets<'_>,
    ) -> Result<(), Malformed> {
        let mut state = self.state.lock();
        state.transfers.answer(from, number, status).ok_or(NO_ANNOUNCEMENT)?;
        self.note(&mut state, packets);
        Ok(())
    }

    /// Takes the answer that bytes are refused of which a read was broken off. The provider may not have seen that it
    /// was, and would still read the memory.
    pub(super) fn broken(
        &self,
        from: u32,
        number: u32,
        packets: &Packets<'_>,
    ) -> Result<(), Malformed> {
        let mut state = self.state.lock();
        let answered = state.transfers.answer(from, number, CompletionStatus::RemoteAccess);
        if answered.ok_or(NO_ANNOUNCEMENT)? {
            self.revoke(&mut state, packets);
        }
        self.note(&mut state, packets);
        Ok(())
    }

    /// Takes the answer that what was announced cannot be read. It is announced again if it was revoked; otherwise this
    /// returns `false`: the peer does not reach this process.
    pub(super) fn unread(
        &self,
        from: u32,
        number: u32,
        means: &Means<'_>,
    ) -> Result<bool, Malformed> {
        let mut state = self.state.lock();
        match state.transfers.unread(from, number).ok_or(NO_ANNOUNCEMENT)? {
            Unread::Unreachable => return Ok(false),
            Unread::Revoked(Purpose::Read(read)) => {
                self.answer_read(&mut state, from, read, means);
            }
            Unread::Revoked(write) => {
                if !self.announce(&mut state, from, write, means) {
                    state.transfers.end(write, CompletionStatus::RemoteAccess);
                }
            }
        }
        self.note(&mut state, &means.packets);
        Ok(true)
    }

    /// Returns `true` if writes have ended and were not passed on.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Passes the contexts and statuses of writes that have ended to `sink`.
    pub(super) fn take_ended(&self, mut sink: impl FnMut(u64, CompletionStatus)) {
        if self.has_ended() {
            let mut state = self.state.lock();
            state.transfers.ended.drain(..).for_each(|(context, status)| sink(context, status));
            self.has_ended.store(false, Ordering::Relaxed);
        }
    }

    /// Forgets a write, whose memory is not used afterwards.
    pub(super) fn cancel(&self, to: u32, context: u64, packets: &Packets<'_>) {
        self.take_back(packets, |transfers| transfers.cancel(to, context));
    }

    /// Ends what needs a key that is not registered any more. Its memory is not used afterwards.
    pub(super) fn close(&self, key: KeyNumber, packets: &Packets<'_>) {
        self.take_back(packets, |transfers| transfers.close(key));
    }

    /// Ends all transfers to a process that is lost. Their memory is not used afterwards.
    pub(super) fn lose(&self, process: u32, packets: &Packets<'_>, sink: impl FnMut(u64)) {
        self.take_back(packets, |transfers| transfers.lose(process, sink));
    }

    /// Takes memory back, of which `end` returns whether it may still be read.
    fn take_back(&self, packets: &Packets<'_>, end: impl FnOnce(&mut Transfers) -> bool) {
        let mut state = self.state.lock();
        if end(&mut state.transfers) {
            self.revoke(&mut state, packets);
        }
        self.note(&mut state, packets);
    }
}

const NO_ANNOUNCEMENT: Malformed = Malformed("the end of no announcement");
