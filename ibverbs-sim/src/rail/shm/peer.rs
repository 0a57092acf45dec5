#![allow(unsafe_code, reason = "checked claims become pointers into memory that a peer has mapped")]
//! A peer of a rail: another process of this machine, or what is left of it.

use std::{
    os::{fd::OwnedFd, unix::net::UnixStream},
    ptr::{self, NonNull},
    sync::{OnceLock, atomic::AtomicU64 as AtomicWord},
};

use rustix::{
    net::{RecvFlags, Shutdown, recv, shutdown},
    process::Pid,
};
use talpf_primitives::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering};

use super::{
    fence::AsymmetricFence,
    handshake::Greeted,
    keys::PeerMemory,
    layout::{Ring, USES},
    mapping::Mapping,
    process_memory::{self, Direction},
    ring::{Position, Writer},
    words::UseWord,
};
use crate::{
    Access, CompletionStatus, WordUpdate,
    rail::{
        RailError,
        frame::{Frame, KeyClaim, Malformed},
        registrations::{KeyNumber, MAX_KEYS},
    },
};

/// Bytes of a copy that is made under the lock of the ring, where no other lock is needed.
const SHORT: usize = 4096;

const WORD: usize = size_of::<u64>();

pub(super) struct Peer {
    pub(super) process: u32,
    /// Number of this process, by which the peer knows it.
    own: u32,
    fence: AsymmetricFence,
    mapping: Mapping,
    event: OwnedFd,
    pub(super) socket: UnixStream,
    reachable: Option<Pid>,
    /// End of the ring to the peer. Its lock is that of the first use word, too.
    writer: Mutex<Writer>,
    /// Slots and words before the next frame, as far as known without the lock.
    next: [AtomicU64; 2],
    /// Locks of the other use words.
    long_uses: [Mutex<()>; USES - 1],
    is_lost: AtomicBool,
    /// Set once the peer was given up, for the thread that polls.
    pub(super) is_silent: AtomicBool,
    /// Mistake of the peer that a thread has found which does not poll.
    mistake: OnceLock<Malformed>,
}

impl Peer {
    pub(super) fn new(
        greeted: Greeted,
        socket: UnixStream,
        own: u32,
        fence: AsymmetricFence,
    ) -> Self {
        let Greeted { process, mapping, event, reachable, .. } = greeted;
        Self {
            process,
            own,
            fence,
            mapping,
            event,
            socket,
            reachable,
            writer: Mutex::default(),
            next: Default::default(),
            long_uses: Default::default(),
            is_lost: AtomicBool::new(false),
            is_silent: AtomicBool::new(false),
            mistake: OnceLock::new(),
        }
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Gives the peer up, and lets it know once no use of its memory is under way here. Returns `false`
    /// if it was given up before.
    pub(super) fn lose(&self) -> bool {
        let is_first = !self.is_lost.swap(true, Ordering::AcqRel);
        if is_first {
            // Uses check the loss under these locks.
            drop(self.writer.lock());
            self.long_uses.iter().for_each(|lock| drop(lock.lock()));
            // The peer may have closed its end.
            let _ = shutdown(&self.socket, Shutdown::Write);
        }
        is_first
    }

    pub(super) fn mistake(&self) -> Option<Malformed> {
        self.mistake.get().copied()
    }

    /// Returns `true` if the peer has ended or left: it touches no memory of this process any more.
    pub(super) fn has_ended(&self) -> bool {
        let mut byte = [0];
        match recv(&self.socket, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((count, _)) => count == 0,
            Err(error) => !matches!(error, rustix::io::Errno::AGAIN | rustix::io::Errno::INTR),
        }
    }

    /// Returns the word of short uses of the peer's memory.
    #[cfg(test)]
    #[allow(dead_code, reason = "not for loom")]
    pub(super) fn use_word(&self) -> &UseWord {
        &self.mapping.uses(self.own)[0]
    }

    /// Returns the number of signs of life that the peer has shown.
    pub(super) fn signs_of_life(&self) -> u64 {
        self.mapping.life_word().signs()
    }

    /// Returns `true` if all memory of the peer can be reached without its processor.
    pub(super) fn is_reachable(&self) -> bool {
        self.reachable.is_some()
    }

    pub(super) fn ring(&self) -> &Ring {
        self.mapping.ring(self.own)
    }

    /// Notes a mistake for the thread that polls.
    #[cold]
    fn mistaken(&self, mistake: Malformed) -> RailError {
        let _ = self.mistake.set(mistake);
        RailError::Lost { process: self.process }
    }

    /// Fetches the memory of the ring that the next frame is written to, with a message of so many bytes. The peer has
    /// read it.
    pub(super) fn prepare_push(&self, bytes: usize) {
        let [slots, words] = self.next.each_ref().map(|next| next.load(Ordering::Relaxed));
        let head_words = 2;
        self.ring().prefetch(Position { slots, words }, head_words + bytes.div_ceil(WORD));
    }

    /// Sends a frame. Returns `false` if the ring has no room at present.
    pub(super) fn push(&self, frame: &Frame<'_>) -> Result<bool, RailError> {
        let mut writer = self.writer.lock();
        let pushed = writer.push(self.ring(), &frame.encode());
        let Position { slots, words } = writer.position();
        self.next[0].store(slots, Ordering::Relaxed);
        self.next[1].store(words, Ordering::Relaxed);
        drop(writer);
        let has_room = pushed.map_err(|mistake| self.mistaken(mistake))?;
        if has_room {
            self.wake();
        }
        Ok(has_room)
    }

    /// Wakes the peer if it sleeps. An event was published.
    #[inline]
    fn wake(&self) {
        if self.mapping.sleep_word().must_wake(self.fence) {
            self.ring_event();
        }
    }

    #[cold]
    fn ring_event(&self) {
        // A full event is readable.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    /// Wakes the peer if it sleeps until there is room in its ring to this process. Something was taken.
    #[inline]
    pub(super) fn wake_for_room(&self) {
        if self.mapping.sleep_word().must_wake_for_room(self.fence) {
            self.ring_event();
        }
    }

    /// Returns `true` if a frame found no room, and the peer was not seen to have taken more since.
    pub(super) fn waits_for_room(&self) -> bool {
        self.writer.lock().waits_for_room()
    }

    /// Returns `true` if the peer has taken something since a frame found no room, the first time.
    pub(super) fn has_new_room(&self) -> bool {
        self.writer.lock().has_new_room(self.ring())
    }

    /// Copies to or from memory of the peer, while the key `permit` is open if one is given. Returns
    /// `None` if the memory cannot be reached from here.
    ///
    /// # Safety
    ///
    /// `local` must be valid for reads; if the copy comes from the peer, for writes.
    pub(super) unsafe fn copy(
        &self,
        direction: Direction,
        local: NonNull<[u8]>,
        claim: KeyClaim,
        permit: Option<u64>,
    ) -> Option<CompletionStatus> {
        if local.len() <= SHORT {
            let _writer = self.writer.lock();
            // SAFETY: the contract of this function.
            return unsafe { self.copy_within(0, direction, local, claim, permit) };
        }
        let (_lock, number) = self.lock_long();
        // SAFETY: the contract of this function.
        unsafe { self.copy_within(number, direction, local, claim, permit) }
    }

    /// Changes a word of memory of the peer, while the key `permit` is open. Returns its value before; `None` if it was
    /// not changed.
    pub(super) fn update(&self, update: WordUpdate, claim: KeyClaim, permit: u64) -> Option<u64> {
        const NEEDED: Access = Access::REMOTE_ATOMIC;
        let permit = KeyClaim { key: permit, offset: 0 };
        let index = |claim: KeyClaim| KeyNumber::from_claim(claim.key).index;
        if index(claim).max(index(permit)) >= MAX_KEYS {
            return None;
        }
        let _writer = self.writer.lock();
        if self.is_lost() {
            return None;
        }
        let _use = Use::begin(&self.mapping.uses(self.own)[0], self.fence);
        self.mapping.key(index(permit)).check(permit, 0, NEEDED)?;
        let there = match self.mapping.key(index(claim)).check(claim, WORD as u64, NEEDED)? {
            PeerMemory::File(offset) => self.mapping.segment(offset, WORD)?,
            PeerMemory::Process(_) => return None,
        };
        let is_word = there.addr().get().is_multiple_of(WORD);
        // SAFETY: the word is aligned and lies in the mapping, and its owner has registered it for this and keeps it
        // while the use lasts.
        is_word.then(|| update.apply(unsafe { AtomicWord::from_ptr(there.as_ptr().cast()) }))
    }

    /// Writes memory of the peer, and notifies it. Returns `None` if the memory cannot be reached
    /// from here.
    ///
    /// # Safety
    ///
    /// `local` must be valid for reads.
    pub(super) unsafe fn write_with_notice(
        &self,
        local: NonNull<[u8]>,
        claim: KeyClaim,
        notice: u32,
    ) -> Result<Option<CompletionStatus>, RailError> {
        let mut writer = self.reserve()?;
        let status = if local.len() <= SHORT {
            // SAFETY: the contract of this function.
            unsafe { self.copy_within(0, Direction::ToPeer, local, claim, None) }
        } else {
            drop(writer);
            let (lock, number) = self.lock_long();
            // SAFETY: the contract of this function.
            let status = unsafe { self.copy_within(number, Direction::ToPeer, local, claim, None) };
            drop(lock);
            writer = self.writer.lock();
            status
        };
        if status == Some(CompletionStatus::Success) {
            let pushed = writer.push_reserved(self.ring(), &Frame::Notice(notice).encode());
            drop(writer);
            pushed.map_err(|mistake| self.mistaken(mistake))?;
            self.wake();
        } else {
            writer.unreserve();
        }
        Ok(status)
    }

    /// Keeps a slot of the ring.
    fn reserve(&self) -> Result<MutexGuard<'_, Writer>, RailError> {
        let mut writer = self.writer.lock();
        match writer.reserve(self.ring()) {
            Ok(true) => Ok(writer),
            Ok(false) => Err(RailError::NoRoom { process: self.process }),
            Err(mistake) => Err(self.mistaken(mistake)),
        }
    }

    /// Locks a use word for a long copy, and returns its number.
    fn lock_long(&self) -> (MutexGuard<'_, ()>, usize) {
        let free = self
            .long_uses
            .iter()
            .enumerate()
            .find_map(|(number, lock)| lock.try_lock().map(|guard| (guard, number + 1)));
        free.unwrap_or_else(|| (self.long_uses[0].lock(), 1))
    }

    /// Copies within a use of the peer's memory. With a permit, which has to be open, the kernel
    /// makes no copies.
    ///
    /// # Safety
    ///
    /// The contract of [`copy`](Self::copy); the caller holds the lock of the use word.
    unsafe fn copy_within(
        &self,
        number: usize,
        direction: Direction,
        local: NonNull<[u8]>,
        claim: KeyClaim,
        permit: Option<u64>,
    ) -> Option<CompletionStatus> {
        let index = KeyNumber::from_claim(claim.key).index;
        let permit_index = permit.map_or(0, |permit| KeyNumber::from_claim(permit).index);
        if index.max(permit_index) >= MAX_KEYS {
            return Some(CompletionStatus::RemoteAccess);
        }
        if self.is_lost() {
            return Some(CompletionStatus::RetryExceeded);
        }
        let needed = match direction {
            Direction::ToPeer => Access::REMOTE_WRITE,
            Direction::FromPeer => Access::REMOTE_READ,
        };
        let _use = Use::begin(&self.mapping.uses(self.own)[number], self.fence);
        let refused = Some(CompletionStatus::RemoteAccess);
        let is_permitted = permit.is_none_or(|key| {
            let permit = KeyClaim { key, offset: 0 };
            self.mapping.key(permit_index).check(permit, 0, needed).is_some()
        });
        if !is_permitted {
            return refused;
        }
        match self.mapping.key(index).check(claim, local.len() as u64, needed) {
            None => refused,
            Some(PeerMemory::File(offset)) => {
                let Some(there) = self.mapping.segment(offset, local.len()) else { return refused };
                let here = local.cast::<u8>();
                let (from, to) = match direction {
                    Direction::ToPeer => (here, there),
                    Direction::FromPeer => (there, here),
                };
                // SAFETY: `local` is valid by the contract of this function. The other side lies in
                // the mapping, and its owner has registered it for this and keeps it while the use
                // lasts.
                unsafe { copy_word_last(from, to, local.len()) };
                Some(CompletionStatus::Success)
            }
            // Messages are faster than the kernel.
            Some(PeerMemory::Process(_)) if permit.is_some() => None,
            Some(PeerMemory::Process(address)) => {
                let pid = self.reachable?;
                // SAFETY: the contract of this function.
                Some(unsafe { process_memory::copy(pid, direction, local, address) })
            }
        }
    }
}

/// Copies memory; its last eight bytes, if they end aligned, in one access after all others.
///
/// # Safety
///
/// `from` must be valid for reads and `to` for writes of `length` bytes.
unsafe fn copy_word_last(from: NonNull<u8>, to: NonNull<u8>, length: usize) {
    let is_word = length >= WORD && (to.addr().get() + length).is_multiple_of(WORD);
    let body = if is_word { length - WORD } else { length };
    let mut last = [0; WORD];
    if is_word {
        // SAFETY: the last word lies in the memory that is valid for reads.
        unsafe {
            ptr::copy_nonoverlapping(from.as_ptr().wrapping_add(body), last.as_mut_ptr(), WORD)
        };
    }
    // SAFETY: the contract of this function.
    unsafe { ptr::copy(from.as_ptr(), to.as_ptr(), body) };
    if is_word {
        // SAFETY: the last word lies in the memory that is valid for writes, and is aligned.
        let word = unsafe { AtomicWord::from_ptr(to.as_ptr().wrapping_add(body).cast()) };
        word.store(u64::from_ne_bytes(last), Ordering::Release);
    }
}

/// A use of memory of a peer, which ends as this drops.
struct Use<'a>(&'a UseWord);

impl<'a> Use<'a> {
    fn begin(word: &'a UseWord, fence: AsymmetricFence) -> Self {
        word.begin(fence);
        Self(word)
    }
}

impl Drop for Use<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
