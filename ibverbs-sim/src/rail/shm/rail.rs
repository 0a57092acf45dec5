//! The rail itself: its peers, its registrations, and the thread that polls. It has over 400 lines, as the
//! trait has many functions.
#![allow(unsafe_code, reason = "the contract of the trait is passed on to those who copy")]

use std::{
    io,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    ptr::NonNull,
    sync::Arc,
};

use rustix::event::{Timespec, epoll};
use talpf_primitives::{AtomicBool, Ordering, TryLock};

use super::{
    fence::AsymmetricFence,
    handshake::Greeted,
    keys::PeerMemory,
    local::LocalEnd,
    peer::Peer,
    process_memory::Direction,
    ring::Reader,
    segment::{MemoryFile, ShmSegment},
};
use crate::{
    Access, CompletionStatus, WordUpdate,
    rail::{
        Armed, LossReason, Posted, Rail, RailAddress, RailError, RailEvent, RailKey, RailLimits,
        RailMemory,
        emulation::{Emulation, Operation, OperationKind, Path},
        frame::{Frame, KeyClaim, MAX_HEAD, Malformed},
        registrations::{KeyNumber, Registrations},
    },
};

/// Most bytes of a message.
const EAGER_BYTES: usize = 8 << 10;
/// Words of the longest frame.
const FRAME_WORDS: usize = MAX_HEAD + EAGER_BYTES / size_of::<u64>();
/// Most frames of a peer that one poll takes.
const BATCH: usize = 64;
/// Polls in vain after which the sockets are asked for peers that have ended.
const POLLS_BETWEEN_CHECKS: u32 = 256;

/// Most peers that are found to have ended at once.
const MOST_ENDS: usize = 16;

/// Settings of a [`ShmRail`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShmConfig {
    /// Most bytes of segments at a time. Only what segments have is memory; the rest is addresses. Fewer if the address
    /// space is limited (`ulimit -v`): those of all processes take half of it at most.
    pub segment_bytes: usize,
    /// Lets the kernel copy to and from memory of peers that is no segment, where it can. Otherwise
    /// such memory is written and read by messages. The same in all processes.
    pub kernel_copies: bool,
}

impl Default for ShmConfig {
    fn default() -> Self {
        Self { segment_bytes: 16 << 30, kernel_copies: true }
    }
}

/// A rail between processes of one machine, through memory that they share.
pub struct ShmRail {
    end: LocalEnd,
    fence: AsymmetricFence,
    peers: Peers,
    registrations: Registrations,
    emulation: Emulation,
    /// Set once this process has announced that it is about to sleep.
    is_armed: AtomicBool,
    /// Readable once a peer has woken this process, or has ended. The data of its events are processes.
    sleep_on: OwnedFd,
    /// Held by the thread that polls.
    inbox: TryLock<Inbox>,
}

/// Peers by process; `None` for this one.
struct Peers(Box<[Option<Peer>]>);

struct Inbox {
    readers: Box<[Reader]>,
    /// The frame that was read last.
    frame: Box<[u64]>,
    polls_in_vain: u32,
}

impl ShmRail {
    pub(super) fn new(end: LocalEnd, peers: Vec<(Greeted, UnixStream)>) -> io::Result<Self> {
        let (own, processes) = (end.handshake.process, end.handshake.processes);
        let is_fenced = peers.iter().all(|(peer, _)| peer.is_fenced) && end.handshake.is_fenced;
        let fence = AsymmetricFence::new(is_fenced);
        let sleep_on = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let of = |process: u32| epoll::EventData::new_u64(process.into());
        epoll::add(&sleep_on, &end.event, of(own), epoll::EventFlags::IN)?;
        let mut all: Vec<_> = (0..processes).map(|_| None).collect();
        for (greeted, socket) in peers {
            epoll::add(&sleep_on, &socket, of(greeted.process), epoll::EventFlags::IN)?;
            let process = greeted.process as usize;
            all[process] = Some(Peer::new(greeted, socket, own, fence));
        }
        let readers = (0..processes).map(|_| Reader::default()).collect();
        let frame = vec![0; FRAME_WORDS].into();
        Ok(Self {
            end,
            fence,
            peers: Peers(all.into()),
            registrations: Registrations::new(),
            emulation: Emulation::new(processes),
            is_armed: AtomicBool::new(false),
            sleep_on,
            inbox: TryLock::new(Inbox { readers, frame, polls_in_vain: 0 }),
        })
    }

    /// Allocates memory that peers map, once it is registered.
    ///
    /// **Errors**: the machine, or [`ShmConfig::segment_bytes`], has no room for it.
    pub fn allocate(&self, bytes: usize) -> io::Result<ShmSegment> {
        ShmSegment::allocate(self.file(), bytes)
    }

    /// Shows a sign of life to all peers. One thread of a process does this.
    pub(crate) fn show_life(&self) {
        self.file().mapping.life_word().show();
    }

    /// Returns the number of signs of life that a process has shown, and 0 for this one.
    pub(crate) fn signs_of_life(&self, process: u32) -> u64 {
        let peer = self.peers.0.get(process as usize).and_then(Option::as_ref);
        peer.map_or(0, Peer::signs_of_life)
    }

    fn file(&self) -> &Arc<MemoryFile> {
        &self.end.file
    }

    /// Returns a peer that is not lost.
    fn peer(&self, process: u32) -> Result<&Peer, RailError> {
        let peer = self.peers.0.get(process as usize).and_then(Option::as_ref);
        let peer = peer.ok_or(RailError::NoSuchPeer { process, processes: self.processes() })?;
        if peer.is_lost() { Err(RailError::Lost { process }) } else { Ok(peer) }
    }

    /// Closes a key, so that no use of it begins any more.
    fn close(&self, key: KeyNumber) {
        self.file().mapping.key(key.index).close(key);
    }

    /// Returns `true` if the kernel may copy to memory for a peer, as it is no segment.
    fn is_reached_by_kernel(&self, memory: NonNull<[u8]>) -> bool {
        self.end.has_kernel_copies()
            && !memory.is_empty()
            && self.file().mapping.offset_of(memory).is_none()
    }

    /// Waits until all uses have ended that may have begun before keys were closed. If it `gives_up`, it returns `false`
    /// once all that have not are of peers that were given up, as they may be stopped: these still use segments if they
    /// go on.
    fn wait_for_uses(&self, gives_up: bool) -> bool {
        self.fence.heavy();
        let mut have_ended = true;
        for peer in self.peers.0.iter().flatten() {
            for word in self.file().mapping.uses(peer.process) {
                let is_given_up = || gives_up && peer.is_silent.load(Ordering::Acquire);
                have_ended &= word.wait(|| peer.has_ended() || is_given_up()) || peer.has_ended();
            }
        }
        have_ended
    }

    /// Posts an operation that is carried out by messages.
    ///
    /// # Safety
    ///
    /// The contract of [`Rail::write`] and [`Rail::read`].
    unsafe fn emulate(
        &self,
        to: u32,
        kind: OperationKind,
        local: NonNull<[u8]>,
        claim: KeyClaim,
        context: u64,
    ) -> Result<Posted, RailError> {
        let operation = Operation::new(kind, local, claim, context);
        // SAFETY: the contract of this function.
        unsafe { self.emulation.post(to, operation, &self.peers, &self.registrations) }
    }

    /// Copies within the call. Returns `false` unless everything was copied.
    ///
    /// # Safety
    ///
    /// The contract of [`Rail::write_at_once`] and [`Rail::read_at_once`].
    unsafe fn copy_at_once(
        &self,
        direction: Direction,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        permit: &RailKey,
    ) -> bool {
        let claim = KeyClaim { key: remote.key.number(), offset: remote.offset };
        let copy = |peer: &Peer| {
            // SAFETY: the contract of this function.
            let status = unsafe { peer.copy(direction, local, claim, Some(permit.number())) };
            status == Some(CompletionStatus::Success)
        };
        self.peer(to).is_ok_and(copy)
    }

    /// Takes frames of a peer, at most `most`.
    fn take(
        &self,
        peer: &Peer,
        inbox: &mut Inbox,
        most: usize,
        sink: &mut dyn FnMut(RailEvent<'_>),
    ) -> Result<(), Malformed> {
        let ring = self.file().mapping.ring(peer.process);
        let reader = &mut inbox.readers[peer.process as usize];
        let mut taken = 0;
        while taken < most
            && let Some(lengths) = reader.pop(ring, &mut inbox.frame)?
        {
            taken += 1;
            let (head, body) = inbox.frame.split_at(lengths.head);
            let bytes = bytemuck::cast_slice(body).get(..lengths.body);
            let bytes = bytes.filter(|bytes: &&[u8]| bytes.len() <= EAGER_BYTES);
            let frame = Frame::decode(head, bytes.ok_or(Malformed("a frame beyond its ring"))?)?;
            self.emulation.receive(peer.process, frame, &self.peers, &self.registrations, sink)?;
        }
        if taken > 0 {
            peer.wake_for_room();
        }
        peer.mistake().map_or(Ok(()), Err)
    }

    fn lose(&self, peer: &Peer, reason: LossReason, sink: &mut dyn FnMut(RailEvent<'_>)) {
        if peer.lose() {
            // The socket of a peer that has ended stays readable.
            let _ = epoll::delete(&self.sleep_on, &peer.socket);
            self.emulation.lose(peer.process, reason, sink);
        }
    }

    /// Returns peers that have ended, [`MOST_ENDS`] at most.
    fn ended_peers(&self) -> Vec<u32> {
        let mut events = [const { MaybeUninit::uninit() }; MOST_ENDS];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // None if it fails: a later poll asks again.
        let Ok((readable, _)) = epoll::wait(&self.sleep_on, &mut events, Some(&at_once)) else {
            return Vec::new();
        };
        let peers = readable.iter().map(|event| event.data.u64() as usize);
        let peers = peers.filter_map(|process| self.peers.0.get(process)?.as_ref());
        peers.filter(|peer| peer.has_ended()).map(|peer| peer.process).collect()
    }

    fn has_next(&self, inbox: &Inbox, peer: &Peer) -> bool {
        let ring = self.file().mapping.ring(peer.process);
        let next = inbox.readers[peer.process as usize].has_next(ring);
        let is_silent = peer.is_silent.load(Ordering::Acquire);
        next.unwrap_or(true) || peer.mistake().is_some() || is_silent
    }
}

#[cfg(test)]
impl ShmRail {
    /// Returns the ring that a peer writes.
    #[allow(dead_code, reason = "not for loom")]
    pub(super) fn ring_from(&self, process: u32) -> &super::layout::Ring {
        self.file().mapping.ring(process)
    }

    /// Begins a use of the memory of a peer.
    #[allow(dead_code, reason = "not for loom")]
    pub(super) fn begin_use(&self, process: u32) {
        self.peers.0[process as usize].as_ref().unwrap().use_word().begin(self.fence);
    }

    /// Ends the use.
    #[allow(dead_code, reason = "not for loom")]
    pub(super) fn end_use(&self, process: u32) {
        self.peers.0[process as usize].as_ref().unwrap().use_word().end();
    }

    /// Returns the ring that a peer reads.
    #[allow(dead_code, reason = "not for loom")]
    pub(super) fn ring_to(&self, process: u32) -> &super::layout::Ring {
        self.peers.0[process as usize].as_ref().unwrap().ring()
    }
}

impl Path for Peers {
    const PIECE: usize = EAGER_BYTES;

    fn push(&self, to: u32, frame: &Frame<'_>) -> bool {
        let peer = self.0[to as usize].as_ref();
        peer.is_some_and(|peer| peer.push(frame).unwrap_or(false))
    }
}

impl Rail for ShmRail {
    fn process(&self) -> u32 {
        self.end.handshake.process
    }

    fn processes(&self) -> u32 {
        self.end.handshake.processes
    }

    fn limits(&self) -> RailLimits {
        let is_reachable = |peer: &Peer| peer.is_reachable();
        RailLimits {
            eager_bytes: EAGER_BYTES,
            notice_bytes: 4,
            needs_peer_processor: !self.peers.0.iter().flatten().all(is_reachable),
            is_mapped: true,
            long_bytes: None,
            has_event: true,
        }
    }

    unsafe fn register(&self, memory: NonNull<[u8]>, access: Access) -> Result<RailKey, RailError> {
        // SAFETY: the contract of this function.
        let key = unsafe { self.registrations.insert(memory, access)? };
        let mapping = &self.file().mapping;
        let address = memory.cast::<u8>().as_ptr().expose_provenance() as u64;
        let location =
            mapping.offset_of(memory).map_or(PeerMemory::Process(address), PeerMemory::File);
        mapping.key(key.index).open(key, location, memory.len(), access);
        Ok(RailKey::from_number(key.number()))
    }

    fn allocate(&self, bytes: usize) -> Option<Box<dyn RailMemory>> {
        Self::allocate(self, bytes).ok().map(|segment| Box::new(segment) as _)
    }

    fn deregister(&self, key: &RailKey) -> Result<(), RailError> {
        let key = KeyNumber::from_claim(key.number());
        let memory = self.registrations.memory(key).ok_or(RailError::NotRegistered)?;
        self.close(key);
        if self.wait_for_uses(!self.is_reached_by_kernel(memory)) {
            return self.registrations.remove(key);
        }
        if let Some(offset) = self.file().mapping.offset_of(memory) {
            self.file().keep(offset as usize, memory.len());
        }
        // The peer may be about to read the record of this key.
        self.registrations.retire(key)
    }

    fn prepare_send(&self, to: u32, bytes: usize) {
        if let Some(Some(peer)) = self.peers.0.get(to as usize) {
            peer.prepare_push(bytes);
        }
    }

    fn send(&self, to: u32, bytes: &[u8]) -> Result<(), RailError> {
        let peer = self.peer(to)?;
        if bytes.len() > EAGER_BYTES {
            return Err(RailError::TooLong { length: bytes.len(), limit: EAGER_BYTES });
        }
        match peer.push(&Frame::Message(bytes))? {
            true => Ok(()),
            false => Err(RailError::NoRoom { process: to }),
        }
    }

    unsafe fn write(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        notice: Option<u32>,
        context: u64,
    ) -> Result<Posted, RailError> {
        let peer = self.peer(to)?;
        let claim = KeyClaim { key: remote.key.number(), offset: remote.offset };
        let status = match notice {
            // SAFETY: the contract of this function.
            Some(notice) => unsafe { peer.write_with_notice(local, claim, notice)? },
            // SAFETY: as above.
            None => unsafe { peer.copy(Direction::ToPeer, local, claim, None) },
        };
        match status {
            Some(status) => Ok(Posted::Ended(status)),
            // SAFETY: as above.
            None => unsafe {
                self.emulate(to, OperationKind::Write { notice }, local, claim, context)
            },
        }
    }

    unsafe fn read(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        context: u64,
    ) -> Result<Posted, RailError> {
        let peer = self.peer(to)?;
        let claim = KeyClaim { key: remote.key.number(), offset: remote.offset };
        // SAFETY: the contract of this function.
        match unsafe { peer.copy(Direction::FromPeer, local, claim, None) } {
            Some(status) => Ok(Posted::Ended(status)),
            // SAFETY: as above.
            None => unsafe { self.emulate(to, OperationKind::Read, local, claim, context) },
        }
    }

    unsafe fn write_at_once(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        permit: &RailKey,
    ) -> bool {
        // SAFETY: the contract of this function.
        unsafe { self.copy_at_once(Direction::ToPeer, to, local, remote, permit) }
    }

    unsafe fn read_at_once(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        permit: &RailKey,
    ) -> bool {
        // SAFETY: the contract of this function.
        unsafe { self.copy_at_once(Direction::FromPeer, to, local, remote, permit) }
    }

    fn update_at_once(
        &self,
        to: u32,
        update: WordUpdate,
        remote: &RailAddress,
        permit: &RailKey,
    ) -> Option<u64> {
        let claim = KeyClaim { key: remote.key.number(), offset: remote.offset };
        self.peer(to).ok()?.update(update, claim, permit.number())
    }

    fn poll(&self, sink: &mut dyn FnMut(RailEvent<'_>)) -> usize {
        let Some(mut inbox) = self.inbox.try_lock() else { return 0 };
        let inbox = &mut *inbox;
        let was_armed = self.is_armed.load(Ordering::Relaxed);
        if was_armed {
            self.is_armed.store(false, Ordering::Relaxed);
            self.file().mapping.sleep_word().retract();
            // The event is not blocking, and empty if nobody has woken this process.
            let _ = rustix::io::read(&self.end.event, &mut [0; size_of::<u64>()]);
        }
        let mut events = 0;
        let mut counting = |event: RailEvent<'_>| {
            events += 1;
            sink(event);
        };
        let checks_ends = was_armed || inbox.polls_in_vain >= POLLS_BETWEEN_CHECKS;
        let (mut is_complete, mut ended) = (false, Vec::new());
        while !is_complete {
            is_complete = true;
            if checks_ends {
                ended = self.ended_peers();
            }
            for peer in self.peers.0.iter().flatten().filter(|peer| !peer.is_lost()) {
                if peer.is_silent.load(Ordering::Acquire) {
                    self.lose(peer, LossReason::Silent, &mut counting);
                    continue;
                }
                // Asked first: a peer that has ended sends nothing after what is there now.
                let has_ended = ended.contains(&peer.process);
                let most = if has_ended { usize::MAX } else { BATCH };
                match self.take(peer, inbox, most, &mut counting) {
                    Err(Malformed(what)) => {
                        self.lose(peer, LossReason::Malformed(what), &mut counting);
                    }
                    Ok(()) if has_ended => {
                        self.lose(peer, LossReason::Ended, &mut counting);
                        // A peer that was asked before may have ended first, and made this one end.
                        is_complete = false;
                    }
                    Ok(()) => self.emulation.resume(peer.process, &self.peers, &self.registrations),
                }
            }
        }
        let is_in_vain = events == 0 && !checks_ends;
        inbox.polls_in_vain = if is_in_vain { inbox.polls_in_vain + 1 } else { 0 };
        events
    }

    fn has_unsent(&self) -> bool {
        let mut peers = self.peers.0.iter().flatten().filter(|peer| !peer.is_lost());
        peers.any(|peer| self.emulation.has_unsent(peer.process))
    }

    fn is_lost(&self, process: u32) -> bool {
        matches!(self.peer(process), Err(RailError::Lost { .. }))
    }

    fn give_up(&self, process: u32) {
        if let Some(Some(peer)) = self.peers.0.get(process as usize) {
            peer.is_silent.store(true, Ordering::Release);
            // A full event is readable.
            let _ = rustix::io::write(&self.end.event, &1u64.to_ne_bytes());
        }
    }

    fn arm(&self) -> Armed<'_> {
        let Some(inbox) = self.inbox.try_lock() else { return Armed::Ready };
        let peers = || self.peers.0.iter().flatten().filter(|peer| !peer.is_lost());
        self.is_armed.store(true, Ordering::Relaxed);
        let for_room = peers().any(Peer::waits_for_room);
        self.file().mapping.sleep_word().announce(for_room, self.fence);
        if peers().any(|peer| self.has_next(&inbox, peer) || peer.has_new_room()) {
            return Armed::Ready;
        }
        // A thread that was refused may not have noted yet that something is unsent, as there was room again.
        let unsent = |peer: &Peer| self.emulation.has_unsent(peer.process);
        if peers().any(|peer| unsent(peer) && !peer.waits_for_room()) {
            return Armed::Nothing;
        }
        Armed::Descriptor(self.sleep_on.as_fd())
    }

    fn announces_room(&self, to: u32) -> bool {
        self.peer(to).is_ok_and(Peer::waits_for_room)
    }
}

impl Drop for ShmRail {
    fn drop(&mut self) {
        // Nobody may use the memory of registrations that were forgotten.
        let mut gives_up = true;
        self.registrations.for_each(|key, memory| {
            self.close(key);
            gives_up &= !self.is_reached_by_kernel(memory);
        });
        self.wait_for_uses(gives_up);
    }
}
