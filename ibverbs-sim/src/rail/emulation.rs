#![allow(unsafe_code, reason = "pieces are copied from and to the memory of operations")]
//! Emulation of writes and reads by messages, which the processor of the memory's owner carries out.
//!
//! ```text
//! origin                                     owner
//!     Write(claim, piece) ... ──────────►    checks each claim, copies the piece
//!     ◄────────── WriteDone(status)          after the last piece, and the notice
//!     Read(claim, length) ──────────────►
//!     ◄────────── Data(piece) ...            checks the claim of each piece
//! ```
//!
//! Up to [`WINDOW`] operations to a peer are under way. The pieces of one are sent in order; a piece
//! for which the path has no room is sent by a later poll. What an origin has under way bounds what
//! the owner keeps for it, so no operation allocates.
//!
//! **Threads**: the state of a peer is locked while frames are made of it, and never while `sink` is
//! called. Memory of an operation is touched under this lock alone, and no more once its end was
//! reported.

use std::{collections::VecDeque, ptr, ptr::NonNull, slice};

use talpf_primitives::{AtomicBool, Mutex, MutexGuard, Ordering};

use super::{
    LossReason, Posted, RailError, RailEvent,
    frame::{Frame, KeyClaim, Malformed},
    registrations::Registrations,
};
use crate::{Access, CompletionStatus};

/// Most operations to a peer that are under way.
pub(super) const WINDOW: usize = 64;

/// Consumer of events.
pub(super) type Sink<'a> = &'a mut dyn FnMut(RailEvent<'_>);

/// A path of frames to peers, in order for each of them.
pub(super) trait Path {
    /// Most bytes of a piece.
    const PIECE: usize;

    /// Sends a frame; returns `false` if the path has no room at present. Calls nobody.
    fn push(&self, to: u32, frame: &Frame<'_>) -> bool;
}

/// Writes and reads of this process, and of its peers, that are carried out by messages.
pub(super) struct Emulation(Box<[EmulatedPeer]>);

struct EmulatedPeer {
    state: Mutex<PeerState>,
    /// Copy of the answer to "is anything not sent", for those who poll.
    has_unsent: AtomicBool,
}

struct PeerState {
    /// Operations under way, by the low bits of their numbers.
    operations: Vec<Option<Operation>>,
    free: Vec<u32>,
    /// Operations with frames that were not sent, the oldest first.
    unsent: VecDeque<u32>,
    replies: VecDeque<Reply>,
    /// Statuses of the writes of the peer that are arriving.
    arriving: [CompletionStatus; WINDOW],
    is_lost: bool,
}

/// An operation of this process.
#[derive(Clone, Copy)]
pub(super) struct Operation {
    pub(super) kind: OperationKind,
    pub(super) local: NonNull<[u8]>,
    pub(super) remote: KeyClaim,
    pub(super) context: u64,
    /// Bytes that were sent or received.
    moved: usize,
    is_sent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationKind {
    Write { notice: Option<u32> },
    Read,
}

// SAFETY: whoever posted the operation has promised that its memory stays, for any thread.
unsafe impl Send for Operation {}

impl Operation {
    pub(super) fn new(
        kind: OperationKind,
        local: NonNull<[u8]>,
        remote: KeyClaim,
        context: u64,
    ) -> Self {
        Self { kind, local, remote, context, moved: 0, is_sent: false }
    }
}

/// An answer to an operation of a peer that was not sent.
enum Reply {
    WriteDone { operation: u32, status: CompletionStatus },
    Data { operation: u32, claim: KeyClaim, remaining: u64 },
}

impl Emulation {
    pub(super) fn new(processes: u32) -> Self {
        let peer = |_| EmulatedPeer {
            state: Mutex::new(PeerState::new()),
            has_unsent: AtomicBool::new(false),
        };
        Self((0..processes).map(peer).collect())
    }

    /// Posts an operation.
    ///
    /// # Safety
    ///
    /// Its memory must be valid for what the operation does until the operation has ended.
    pub(super) unsafe fn post(
        &self,
        to: u32,
        operation: Operation,
        path: &impl Path,
        registrations: &Registrations,
    ) -> Result<Posted, RailError> {
        let mut peer = self.lock(to);
        if peer.is_lost {
            return Err(RailError::Lost { process: to });
        }
        let number = peer.free.pop().ok_or(RailError::NoRoom { process: to })?;
        peer.operations[number as usize] = Some(operation);
        peer.unsent.push_back(number);
        self.send(to, &mut peer, path, registrations);
        Ok(Posted::UnderWay)
    }

    /// Sends what the path had no room for.
    pub(super) fn resume(&self, to: u32, path: &impl Path, registrations: &Registrations) {
        if self.has_unsent(to) {
            self.send(to, &mut self.lock(to), path, registrations);
        }
    }

    /// Returns `true` if the path had no room for something.
    pub(super) fn has_unsent(&self, to: u32) -> bool {
        self.0[to as usize].has_unsent.load(Ordering::Relaxed)
    }

    fn lock(&self, process: u32) -> MutexGuard<'_, PeerState> {
        self.0[process as usize].state.lock()
    }

    fn send(&self, to: u32, peer: &mut PeerState, path: &impl Path, registrations: &Registrations) {
        peer.send(to, path, registrations);
        let has_unsent = !peer.replies.is_empty() || !peer.unsent.is_empty();
        self.0[to as usize].has_unsent.store(has_unsent, Ordering::Relaxed);
    }

    /// Carries out a frame that has arrived.
    pub(super) fn receive(
        &self,
        from: u32,
        frame: Frame<'_>,
        path: &impl Path,
        registrations: &Registrations,
        sink: Sink<'_>,
    ) -> Result<(), Malformed> {
        match frame {
            Frame::Message(bytes) => sink(RailEvent::Message { from, bytes }),
            Frame::Notice(notice) => sink(RailEvent::Notice { from, notice }),
            Frame::Write { operation, claim, remaining, notice, bytes } => {
                let left = remaining.checked_sub(bytes.len() as u64);
                let left = left.ok_or(Malformed("a piece longer than its write"))?;
                if bytes.is_empty() && left > 0 {
                    return Err(Malformed("an empty piece"));
                }
                let mut peer = self.lock(from);
                let slot = peer.arriving.get_mut(operation as usize);
                let slot = slot.ok_or(Malformed("an impossible operation"))?;
                if *slot == CompletionStatus::Success {
                    *slot = land(registrations, claim, remaining, bytes);
                }
                if left > 0 {
                    return Ok(());
                }
                let status = std::mem::take(slot);
                // The notice goes first: its sender may take the reply for the end of everything.
                if let (CompletionStatus::Success, Some(notice)) = (status, notice) {
                    drop(peer);
                    sink(RailEvent::Notice { from, notice });
                    peer = self.lock(from);
                }
                peer.reply(Reply::WriteDone { operation, status })?;
                self.send(from, &mut peer, path, registrations);
            }
            Frame::Read { operation, claim, length } => {
                let mut peer = self.lock(from);
                peer.reply(Reply::Data { operation, claim, remaining: length })?;
                self.send(from, &mut peer, path, registrations);
            }
            Frame::WriteDone { operation, status } => {
                let mut peer = self.lock(from);
                let ended = peer.end(operation, |kind| kind != OperationKind::Read)?;
                drop(peer);
                sink(RailEvent::Completed { context: ended.context, status });
            }
            Frame::Data { operation, status, remaining, bytes } => {
                let mut peer = self.lock(from);
                if status == CompletionStatus::Success && !peer.fill(operation, remaining, bytes)? {
                    return Ok(());
                }
                let ended = peer.end(operation, |kind| kind == OperationKind::Read)?;
                drop(peer);
                sink(RailEvent::Completed { context: ended.context, status });
            }
        }
        Ok(())
    }

    /// Ends all operations to a process that is lost, and reports the loss.
    pub(super) fn lose(&self, process: u32, reason: LossReason, sink: Sink<'_>) {
        loop {
            let mut peer = self.lock(process);
            peer.is_lost = true;
            peer.unsent.clear();
            peer.replies.clear();
            self.0[process as usize].has_unsent.store(false, Ordering::Relaxed);
            let next = peer.operations.iter_mut().find_map(Option::take);
            drop(peer);
            let Some(Operation { context, .. }) = next else { break };
            sink(RailEvent::Completed { context, status: CompletionStatus::RetryExceeded });
        }
        sink(RailEvent::Lost { process, reason });
    }
}

/// Copies a piece to the memory that it claims, if the peer may write there.
fn land(
    registrations: &Registrations,
    claim: KeyClaim,
    remaining: u64,
    bytes: &[u8],
) -> CompletionStatus {
    // SAFETY: the memory is registered for writes, of `remaining` bytes, and those of the piece are
    // no more.
    let copy = |start: NonNull<u8>| unsafe {
        ptr::copy_nonoverlapping(bytes.as_ptr(), start.as_ptr(), bytes.len());
    };
    let landed = registrations.with(claim, remaining, Access::REMOTE_WRITE, copy);
    landed.map_or(CompletionStatus::RemoteAccess, |()| CompletionStatus::Success)
}

impl PeerState {
    fn new() -> Self {
        Self {
            operations: vec![None; WINDOW],
            free: (0..WINDOW as u32).rev().collect(),
            unsent: VecDeque::with_capacity(WINDOW),
            replies: VecDeque::with_capacity(WINDOW),
            arriving: [CompletionStatus::Success; WINDOW],
            is_lost: false,
        }
    }

    fn reply(&mut self, reply: Reply) -> Result<(), Malformed> {
        if self.replies.len() == WINDOW {
            return Err(Malformed("more operations than it may have under way"));
        }
        self.replies.push_back(reply);
        Ok(())
    }

    /// Ends an operation of which all was sent.
    fn end(
        &mut self,
        number: u32,
        is_expected: impl Fn(OperationKind) -> bool,
    ) -> Result<Operation, Malformed> {
        let slot = self.operations.get_mut(number as usize);
        let slot = slot.ok_or(Malformed("an impossible operation"))?;
        let ended = slot.take_if(|operation| operation.is_sent && is_expected(operation.kind));
        let ended = ended.ok_or(Malformed("the end of no operation"))?;
        self.free.push(number);
        Ok(ended)
    }

    /// Copies a piece to the memory of a read. Returns `true` if it was the last one.
    fn fill(&mut self, number: u32, remaining: u64, bytes: &[u8]) -> Result<bool, Malformed> {
        let operation = self.operations.get_mut(number as usize).and_then(Option::as_mut);
        let operation = operation
            .filter(|operation| operation.is_sent && operation.kind == OperationKind::Read);
        let operation = operation.ok_or(Malformed("data of no operation"))?;
        let expected = (operation.local.len() - operation.moved) as u64;
        let is_last = bytes.len() as u64 == expected;
        if remaining != expected || bytes.len() as u64 > expected || (bytes.is_empty() && !is_last)
        {
            return Err(Malformed("data that do not fit their read"));
        }
        // SAFETY: what has moved is less than the memory of the operation.
        let start = unsafe { operation.local.cast::<u8>().add(operation.moved) };
        // SAFETY: the operation is under way, so its memory is valid for writes; the piece ends
        // within it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), start.as_ptr(), bytes.len()) };
        operation.moved += bytes.len();
        Ok(is_last)
    }

    /// Sends replies, then pieces of operations, while the path has room.
    fn send(&mut self, to: u32, path: &impl Path, registrations: &Registrations) {
        while let Some(reply) = self.replies.front_mut() {
            match reply.send(to, path, registrations) {
                Sent::All => drop(self.replies.pop_front()),
                Sent::Piece => {}
                Sent::Nothing => return,
            }
        }
        while let Some(number) = self.unsent.front() {
            let operation = self.operations[*number as usize].as_mut();
            match operation.map_or(Sent::All, |operation| operation.send(*number, to, path)) {
                Sent::All => drop(self.unsent.pop_front()),
                Sent::Piece => {}
                Sent::Nothing => return,
            }
        }
    }
}

/// Part of an operation, or of a reply, that was sent.
enum Sent {
    Nothing,
    Piece,
    All,
}

impl Operation {
    fn send<P: Path>(&mut self, number: u32, to: u32, path: &P) -> Sent {
        let OperationKind::Write { notice } = self.kind else {
            let length = self.local.len() as u64;
            let read = Frame::Read { operation: number, claim: self.remote, length };
            self.is_sent = path.push(to, &read);
            return if self.is_sent { Sent::All } else { Sent::Nothing };
        };
        let left = self.local.len() - self.moved;
        let length = left.min(P::PIECE);
        // SAFETY: what has moved is at most the memory of the operation.
        let start = unsafe { self.local.cast::<u8>().add(self.moved) };
        // SAFETY: the operation is under way, so nobody changes its memory; the piece ends within.
        let bytes = unsafe { slice::from_raw_parts(start.as_ptr(), length) };
        let KeyClaim { key, offset } = self.remote;
        let claim = KeyClaim { key, offset: offset.wrapping_add(self.moved as u64) };
        let remaining = left as u64;
        let write = Frame::Write { operation: number, claim, remaining, notice, bytes };
        if !path.push(to, &write) {
            return Sent::Nothing;
        }
        self.moved += length;
        self.is_sent = self.moved == self.local.len();
        if self.is_sent { Sent::All } else { Sent::Piece }
    }
}

impl Reply {
    fn send<P: Path>(&mut self, to: u32, path: &P, registrations: &Registrations) -> Sent {
        match self {
            &mut Self::WriteDone { operation, status } => {
                let is_sent = path.push(to, &Frame::WriteDone { operation, status });
                if is_sent { Sent::All } else { Sent::Nothing }
            }
            Self::Data { operation, claim, remaining } => {
                let length = usize::try_from(*remaining).map_or(P::PIECE, |all| all.min(P::PIECE));
                let push = |start: NonNull<u8>| {
                    // SAFETY: the memory is registered for reads of `remaining` bytes, and those of
                    // the piece are no more.
                    let bytes = unsafe { slice::from_raw_parts(start.as_ptr(), length) };
                    let (operation, remaining) = (*operation, *remaining);
                    let status = CompletionStatus::Success;
                    path.push(to, &Frame::Data { operation, status, remaining, bytes })
                };
                match registrations.with(*claim, *remaining, Access::REMOTE_READ, push) {
                    Some(false) => Sent::Nothing,
                    Some(true) => {
                        *remaining -= length as u64;
                        claim.offset += length as u64;
                        if *remaining == 0 { Sent::All } else { Sent::Piece }
                    }
                    None => {
                        let (operation, status) = (*operation, CompletionStatus::RemoteAccess);
                        let refusal = Frame::Data { operation, status, remaining: 0, bytes: &[] };
                        if path.push(to, &refusal) { Sent::All } else { Sent::Nothing }
                    }
                }
            }
        }
    }
}
