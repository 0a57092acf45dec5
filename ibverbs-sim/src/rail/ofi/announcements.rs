#![allow(unsafe_code, reason = "bytes are copied to memory that peers read")]
//! Announcements: bytes of this process that peers read, those of long writes and of the answers to long reads.
//!
//! Both are *transfers*. Their bytes are copied, piece by piece, to memory of this crate that peers may read,
//! and the peer gets an *announcement* of each piece. It reads the piece to where it belongs, and
//! answers; the blocks of the announcement are free then. So peers use no other memory of this process, however
//! they end, and the provider writes to no memory that its owner has not passed to it. Several pieces are under
//! way, so that one is copied while others are read.
//!
//! A write is copied by the thread that posts it, as far as there are blocks, and for the rest by those that poll;
//! the answer to a read by these alone.
//!
//! **Threads**: `waiting` is locked while bytes are copied, so that whoever takes memory back waits for that; `state`
//! only for as long as a piece is noted. Who takes both takes `waiting` first.

use std::{
    ptr::NonNull,
    slice,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use talpf_primitives::Mutex;

use super::{
    OfiError, abi,
    blocks::{BLOCK_BYTES, BLOCKS, NoBlocks, Span},
    endpoint::{Endpoint, Registered},
    memory::PacketMemory,
    outgoing::Packets,
    packet::{Announcement, Control, ReadPiece, ReadRequest},
    reader::Exposed,
    transfers::{Purpose, Transfers},
};
use crate::{
    Access, CompletionStatus,
    rail::{
        RailError,
        emulation::WINDOW,
        frame::{KeyClaim, Malformed},
        registrations::{KeyNumber, Registrations},
    },
};

/// Bytes of a piece.
pub(super) const PIECE_BYTES: usize = 512 << 10;
/// Attempts to register memory under a key that is in use.
const ATTEMPTS: u64 = 8;

/// Announcements of this process.
pub(super) struct Announcements {
    /// Registration of the memory. Closed before the endpoint.
    registered: Registered,
    has_addresses: bool,
    /// Owned by the rail as well, which closes the endpoint first.
    memory: Arc<PacketMemory>,
    /// Transfers of which not all was copied, the oldest first.
    waiting: Mutex<Vec<Waiting>>,
    state: Mutex<Transfers>,
    has_waiting: AtomicBool,
    has_unsent: AtomicBool,
    has_ended: AtomicBool,
}

/// A transfer of which not all was copied.
struct Waiting {
    transfer: u32,
    to: u32,
    bytes: Bytes,
    length: usize,
    /// Bytes that were copied.
    copied: usize,
}

/// Bytes of a transfer.
enum Bytes {
    Write(LongWrite),
    Read(ReadRequest),
}

/// A write of which the bytes are announced.
pub(super) struct LongWrite {
    pub(super) local: NonNull<[u8]>,
    /// Number of a key of this process that must be registered; `None` if the memory stays anyway.
    pub(super) local_key: Option<KeyNumber>,
    /// The target.
    pub(super) announcement: Announcement,
    pub(super) context: u64,
}

// SAFETY: whoever has posted the write has promised that its memory stays, for any thread.
unsafe impl Send for LongWrite {}

impl Announcements {
    /// Registers memory for announcements.
    pub(super) fn new(endpoint: &Endpoint, run: u64, processes: usize) -> Result<Self, OfiError> {
        let memory = Arc::new(PacketMemory::new(BLOCKS * BLOCK_BYTES));
        let register = |attempt: u64| {
            let key = run.wrapping_mul(2 * attempt + 1).rotate_left(attempt as u32);
            // SAFETY: the memory is kept beside its registration, which is closed first. Peers read it
            // only, and get bytes that mean nothing where nothing was announced to them.
            unsafe { endpoint.register(memory.all(), abi::REMOTE_READ, key) }
        };
        let registered = (1..ATTEMPTS).map(register).find(Result::is_ok);
        let registered = registered.unwrap_or_else(|| register(ATTEMPTS))?;
        Ok(Self {
            registered,
            has_addresses: endpoint.has_addresses(),
            memory,
            waiting: Mutex::default(),
            state: Mutex::new(Transfers::new(processes)),
            has_waiting: AtomicBool::new(false),
            has_unsent: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
        })
    }

    pub(super) fn memory(&self) -> Arc<PacketMemory> {
        Arc::clone(&self.memory)
    }

    /// Returns the memory as peers name it.
    pub(super) fn exposed(&self) -> Exposed {
        let start = self.memory.all().cast::<u8>().addr().get() as u64;
        Exposed { key: self.registered.key(), start: if self.has_addresses { start } else { 0 } }
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
        packets: &Packets<'_>,
        registrations: &Registrations,
    ) -> Option<Result<(), RailError>> {
        let (length, context) = (write.local.len(), write.context);
        let mut waiting = self.waiting.lock();
        if packets.outgoing.peer(to).is_none_or(|peer| peer.is_lost()) {
            return Some(Err(RailError::Lost { process: to }));
        }
        if write.local_key.is_some_and(|key| !registrations.contains(key)) {
            return None;
        }
        let mut state = self.state.lock();
        if state.blocks.are_unusable() {
            return None;
        }
        if state.count(to, |purpose| !matches!(purpose, Purpose::Read(_))) == WINDOW {
            return Some(Err(RailError::NoRoom { process: to }));
        }
        let transfer = state.begin(to, Purpose::Write(context));
        drop(state);
        waiting.push(Waiting { transfer, to, bytes: Bytes::Write(write), length, copied: 0 });
        self.copy(&mut waiting, packets, registrations);
        Some(Ok(()))
    }

    /// Takes a read of a peer, whose bytes are announced by [`go_on`](Self::go_on).
    pub(super) fn asked(&self, from: u32, read: ReadRequest) -> Result<(), Malformed> {
        let mut waiting = self.waiting.lock();
        let mut state = self.state.lock();
        if state.count(from, |purpose| matches!(purpose, Purpose::Read(_))) == WINDOW {
            return Err(Malformed("more reads than it may have under way"));
        }
        let transfer = state.begin(from, Purpose::Read(read.number));
        let length = read.length as usize;
        let bytes = Bytes::Read(read);
        waiting.push(Waiting { transfer, to: from, bytes, length, copied: 0 });
        self.has_waiting.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Announces what there is room for, unless another thread does.
    pub(super) fn go_on(&self, packets: &Packets<'_>, registrations: &Registrations) {
        if self.has_waiting.load(Ordering::Relaxed)
            && let Some(mut waiting) = self.waiting.try_lock()
        {
            self.copy(&mut waiting, packets, registrations);
        }
    }

    /// Returns `true` if a poll would get on, though nothing arrives.
    pub(super) fn may_go_on(&self) -> bool {
        if self.has_ended.load(Ordering::Relaxed) {
            return true;
        }
        if !self.has_waiting.load(Ordering::Relaxed) {
            return false;
        }
        let Some(waiting) = self.waiting.try_lock() else { return true };
        let mut state = self.state.lock();
        waiting.iter().any(|waiting| {
            let left = (waiting.length - waiting.copied).min(PIECE_BYTES);
            let span = state.blocks.take(waiting.to, left);
            if let Ok(span) = span {
                state.blocks.give_back(waiting.to, span);
            }
            span != Err(NoBlocks::Taken) || state.is_stopped(waiting.transfer)
        })
    }

    /// Copies and announces pieces, as far as there are blocks.
    fn copy(
        &self,
        waiting: &mut Vec<Waiting>,
        packets: &Packets<'_>,
        registrations: &Registrations,
    ) {
        waiting.retain_mut(|waiting| {
            while self.copy_piece(waiting, packets, registrations) {}
            !self.state.lock().is_announced(waiting.transfer)
        });
        self.has_waiting.store(!waiting.is_empty(), Ordering::Relaxed);
        let mut state = self.state.lock();
        state.end_announced(|_| true);
        self.note(&mut state, packets);
    }

    /// Copies and announces a piece. Returns `false` if there is no further one, or there are no blocks.
    fn copy_piece(
        &self,
        waiting: &mut Waiting,
        packets: &Packets<'_>,
        registrations: &Registrations,
    ) -> bool {
        let left = waiting.length - waiting.copied;
        let mut state = self.state.lock();
        if state.is_stopped(waiting.transfer) {
            state.stop(waiting.transfer);
            return false;
        }
        let span = match state.blocks.take(waiting.to, left.min(PIECE_BYTES)) {
            Ok(span) => span,
            Err(NoBlocks::Taken) => return false,
            Err(NoBlocks::Unusable) => {
                state.refuse(waiting.transfer, CompletionStatus::RemoteAccess);
                state.stop(waiting.transfer);
                return false;
            }
        };
        drop(state);
        let length = left.min(PIECE_BYTES).min(span.bytes());
        let is_copied = self.copy_to(span, length, waiting, registrations);
        let mut state = self.state.lock();
        if !is_copied {
            state.blocks.give_back(waiting.to, span);
            state.refuse(waiting.transfer, CompletionStatus::RemoteAccess);
            state.stop(waiting.transfer);
            return false;
        }
        let (block, length) = (span.first, length as u32);
        let control = match &waiting.bytes {
            Bytes::Write(LongWrite { announcement, .. }) => {
                let is_last = length as usize == left;
                Control::Announcement(Announcement {
                    block,
                    length,
                    transfer: waiting.transfer,
                    offset: announcement.offset.wrapping_add(waiting.copied as u64),
                    remaining: left as u32,
                    notice: announcement.notice.filter(|_| is_last),
                    ..*announcement
                })
            }
            Bytes::Read(read) => {
                let (read, offset) = (read.number, waiting.copied as u32);
                Control::ReadPiece(ReadPiece { block, length, read, offset })
            }
        };
        waiting.copied += length as usize;
        state.announce(waiting.transfer, span, waiting.copied == waiting.length);
        state.unsent.push_back((waiting.to, control));
        self.note(&mut state, packets);
        waiting.copied < waiting.length
    }

    /// Copies the next bytes of a transfer to blocks. Returns `false` if the claim to them is refused.
    fn copy_to(
        &self,
        span: Span,
        length: usize,
        waiting: &Waiting,
        registrations: &Registrations,
    ) -> bool {
        let copy = |start: NonNull<u8>| {
            // SAFETY: the memory is that of a write, which stays until the lock of those that wait is free; or
            // registered for reads, of as many bytes, which it stays during the call.
            let bytes = unsafe { slice::from_raw_parts(start.as_ptr(), length) };
            // SAFETY: this announcement has the blocks.
            unsafe { self.memory.write(span.first as usize * BLOCK_BYTES, [bytes, &[]]) };
        };
        match &waiting.bytes {
            Bytes::Write(LongWrite { local, .. }) => {
                // SAFETY: less was copied than the memory has.
                copy(unsafe { local.cast::<u8>().add(waiting.copied) });
                true
            }
            Bytes::Read(ReadRequest { key, offset, permit, .. }) => {
                let nothing = KeyClaim { key: *permit, offset: 0 };
                let is_permitted = *permit == 0
                    || registrations.with(nothing, 0, Access::REMOTE_READ, |_| ()).is_some();
                let offset = offset.wrapping_add(waiting.copied as u64);
                let left = (waiting.length - waiting.copied) as u64;
                let claim = KeyClaim { key: *key, offset };
                is_permitted && registrations.with(claim, left, Access::REMOTE_READ, copy).is_some()
            }
        }
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
        self.state.lock().count(to, |_| true) > 0
    }

    /// Returns `true` if not all bytes of a transfer were copied.
    pub(super) fn has_waiting(&self) -> bool {
        self.has_waiting.load(Ordering::Relaxed)
    }

    /// Sends frames, and notes for those who poll what there is.
    fn note(&self, state: &mut Transfers, packets: &Packets<'_>) {
        // Frames to one peer stay in order.
        let mut full = Vec::new();
        state.unsent.retain(|&(to, control)| {
            let is_kept = full.contains(&to) || !packets.push_control(to, control);
            if is_kept {
                full.push(to);
            }
            is_kept
        });
        self.has_unsent.store(!state.unsent.is_empty(), Ordering::Relaxed);
        self.has_ended.store(!state.ended.is_empty(), Ordering::Relaxed);
    }

    /// Takes the answer to an announcement.
    pub(super) fn answered(
        &self,
        from: u32,
        block: u32,
        status: CompletionStatus,
    ) -> Result<(), Malformed> {
        let mut state = self.state.lock();
        let is_known = state.answer(from, block, status);
        self.has_ended.store(!state.ended.is_empty(), Ordering::Relaxed);
        if is_known { Ok(()) } else { Err(Malformed("the end of no announcement")) }
    }

    /// Returns `true` if writes have ended and were not passed on.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Passes the contexts and statuses of writes that have ended to `sink`.
    pub(super) fn take_ended(&self, mut sink: impl FnMut(u64, CompletionStatus)) {
        if self.has_ended.load(Ordering::Relaxed) {
            let mut state = self.state.lock();
            state.ended.drain(..).for_each(|(context, status)| sink(context, status));
            self.has_ended.store(false, Ordering::Relaxed);
        }
    }

    /// Forgets a write, whose memory is not used afterwards.
    pub(super) fn cancel(&self, to: u32, context: u64) {
        let mut waiting = self.waiting.lock();
        let mut state = self.state.lock();
        let Some(number) = state.find(to, context) else { return };
        waiting.retain(|waiting| waiting.transfer != number);
        state.cancel(number);
    }

    /// Ends writes whose memory has a key that is not registered any more. That memory is not used afterwards.
    pub(super) fn close(&self, key: KeyNumber) {
        let mut waiting = self.waiting.lock();
        let mut state = self.state.lock();
        waiting.retain(|waiting| {
            let Bytes::Write(write) = &waiting.bytes else { return true };
            let is_closed = write.local_key == Some(key);
            if is_closed {
                state.refuse(waiting.transfer, CompletionStatus::LocalProtection);
                state.stop(waiting.transfer);
            }
            !is_closed
        });
        state.end_announced(|_| true);
        self.has_ended.store(!state.ended.is_empty(), Ordering::Relaxed);
    }

    /// Ends all transfers to a process that is lost. `is_gone` if it reads no more.
    pub(super) fn lose(&self, process: u32, is_gone: bool, sink: impl FnMut(u64)) {
        let mut waiting = self.waiting.lock();
        waiting.retain(|waiting| waiting.to != process);
        self.state.lock().lose(process, is_gone, sink);
    }
}
