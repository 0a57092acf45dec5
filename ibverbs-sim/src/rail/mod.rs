//! Rails: transports of operations to other processes.
//!
//! A [`Rail`] has the three data operations that every network has, and promises no more than every
//! network does:
//!
//! | operation | ends at the origin | at the peer |
//! |---|---|---|
//! | [`send`](Rail::send): a message of up to [`RailLimits::eager_bytes`] | at once: the bytes were taken | [`RailEvent::Message`], in order for each pair |
//! | [`write`](Rail::write) into registered memory | once it was delivered | nothing, or [`RailEvent::Notice`] after the bytes |
//! | [`read`](Rail::read) from registered memory | once the bytes are there | nothing |
//!
//! **Ordering**: messages of one process to another arrive in order. Nothing else is ordered: two
//! writes, a write and a message behind it, or the bytes of one write. Only a notice, or a message
//! that is sent after the write has ended, says that the bytes of a write are there.
//!
//! - `event`, `key`, `limits`, `error`: the records that go in and out.
//! - `frame`: the messages of which writes and reads are made where memory is not mapped.
//! - `registrations`: the memory of this process that peers may use.
//! - `emulation`: writes and reads by messages that the processor of the owner carries out.
//! - `packets`: the rail over any [`Wire`](crate::Wire).
//! - `shm`: the rail between processes of one machine, through memory that all of them map.
//! - `ofi`: the rail on libfabric, which has the networks of machines.
//! - `routed`: the rail between processes of several machines, of one within each and one between.
//!
//! Numbers that a peer sends are claims: memory is touched only after key, range and rights were
//! checked. A peer that sends bytes that mean nothing is lost, with the reason.

mod emulation;
mod error;
mod event;
mod frame;
mod key;
mod limits;
mod ofi;
mod packets;
mod registrations;
mod routed;
mod shm;

pub use self::error::RailError;
pub use self::event::{Armed, LossReason, Posted, RailEvent};
pub use self::key::{RailAddress, RailKey};
pub use self::limits::RailLimits;
pub use self::ofi::{OfiChoice, OfiEnd, OfiError, OfiProvider, OfiProviders, OfiRail};
pub use self::packets::Packets;
pub use self::routed::RoutedRail;
pub use self::shm::{ShmConfig, ShmRail, ShmSegment};

use std::ptr::NonNull;

use crate::{Access, WordUpdate};

/// Memory that a rail has allocated, all zero at first, and given back as this drops.
///
/// # Safety
///
/// Until the drop, [`memory`](Self::memory) returns the same memory each time, at least as long as
/// was asked for, and aligned to a page. It is valid for reads and writes from any thread; other
/// processes use it only as far as it is registered.
#[allow(unsafe_code, reason = "who allocates vouches for the memory")]
pub unsafe trait RailMemory: Send + Sync {
    /// Returns the memory.
    fn memory(&self) -> NonNull<[u8]>;
}

/// A transport of operations between the processes of a run.
///
/// All functions may be called from any thread, and none waits for a peer except
/// [`deregister`](Self::deregister). No operation allocates memory, unless its rail says so.
#[allow(unsafe_code, reason = "peers and the rail use memory of the caller")]
pub trait Rail: Send + Sync + 'static {
    /// Returns the number of this process, from 0.
    fn process(&self) -> u32;

    /// Returns the number of processes.
    fn processes(&self) -> u32;

    /// Returns the limits of the operations.
    fn limits(&self) -> RailLimits;

    /// Returns `true` if memory of a peer can be mapped, for a rail whose
    /// [limits](RailLimits::is_mapped) allow it.
    fn is_mapped_to(&self, to: u32) -> bool {
        let _ = to;
        true
    }

    /// Lets peers use memory of this process, as far as `access` has remote rights, and returns the
    /// key that they need for it.
    ///
    /// **Errors**: too much memory is registered.
    ///
    /// # Safety
    ///
    /// Until [`deregister`](Self::deregister) has returned, `memory` must be valid for reads, and
    /// for writes if `access` has [`Access::REMOTE_WRITE`], with no Rust reference that conflicts
    /// with what peers do.
    unsafe fn register(&self, memory: NonNull<[u8]>, access: Access) -> Result<RailKey, RailError>;

    /// Allocates memory that peers map once it is registered; `None` if the rail maps none, or
    /// what it has is used up.
    fn allocate(&self, bytes: usize) -> Option<Box<dyn RailMemory>> {
        let _ = bytes;
        None
    }

    /// Takes the memory of a key from the peers. Returns once no peer can touch it any more, which
    /// waits for the operations that peers carry out on it at this moment; a peer that is stopped
    /// within one delays it until that peer goes on, ends, or is [given up](Self::give_up). Memory of
    /// [`allocate`](Self::allocate) is allocated for nothing else once such a peer was.
    ///
    /// **Errors**: the key is not registered.
    fn deregister(&self, key: &RailKey) -> Result<(), RailError>;

    /// Sends a message.
    ///
    /// **Completion**: local: the bytes were taken.
    ///
    /// **Errors**: [`RailError::NoRoom`] until the peer has taken earlier ones; the message is longer
    /// than the limit; the peer is lost.
    fn send(&self, to: u32, bytes: &[u8]) -> Result<(), RailError>;

    /// Hints that a [`send`](Self::send) of about `bytes` bytes to a process follows at once: the rail may begin to
    /// fetch what that takes.
    fn prepare_send(&self, to: u32, bytes: usize) {
        let _ = (to, bytes);
    }

    /// Writes `local` to the memory of a peer, which gets `notice` once all bytes are there.
    ///
    /// **Completion**: delivered. If the write is [`Posted::UnderWay`], a
    /// [`RailEvent::Completed`] with `context` follows.
    ///
    /// **Errors**: [`RailError::NoRoom`] until earlier operations have ended; the peer is lost. A
    /// claim that the peer refuses is no error of the call but a status.
    ///
    /// # Safety
    ///
    /// `local` must be valid for reads, and be changed by nobody, until the write has ended.
    unsafe fn write(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        notice: Option<u32>,
        context: u64,
    ) -> Result<Posted, RailError>;

    /// Reads memory of a peer into `local`.
    ///
    /// **Completion**: the bytes are in `local`. If the read is [`Posted::UnderWay`], a
    /// [`RailEvent::Completed`] with `context` follows.
    ///
    /// **Errors**: those of [`write`](Self::write).
    ///
    /// # Safety
    ///
    /// `local` must be valid for writes, and be used by nobody else, until the read has ended.
    unsafe fn read(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        context: u64,
    ) -> Result<Posted, RailError>;

    /// Writes `local` to memory of a peer within the call, as far as the keys of the memory and of
    /// `permit`, which the peer has registered both, allow it: once either is deregistered nothing is
    /// written. Returns `false` if not everything was written: the memory is not mapped, or a message
    /// is faster, or the peer has to decide.
    ///
    /// The caller may hold locks: an implementation calls nobody and does not panic.
    ///
    /// # Safety
    ///
    /// `local` must be valid for reads, and be changed by nobody during the call.
    unsafe fn write_at_once(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        permit: &RailKey,
    ) -> bool {
        let _ = (to, local, remote, permit);
        false
    }

    /// Reads memory of a peer within the call; otherwise as [`write_at_once`](Self::write_at_once).
    ///
    /// # Safety
    ///
    /// `local` must be valid for writes, and be used by nobody else during the call.
    unsafe fn read_at_once(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        permit: &RailKey,
    ) -> bool {
        let _ = (to, local, remote, permit);
        false
    }

    /// Changes an aligned word of memory of a peer in one atomic access within the call, and returns its value before,
    /// as far as the keys of the memory and of `permit` allow it. `None` if it was not changed: the memory is not
    /// mapped, or no aligned word, or the peer has to decide. Atomic towards the peer's own atomic accesses.
    ///
    /// The caller may hold locks, as of [`write_at_once`](Self::write_at_once).
    fn update_at_once(
        &self,
        to: u32,
        update: WordUpdate,
        remote: &RailAddress,
        permit: &RailKey,
    ) -> Option<u64> {
        let _ = (to, update, remote, permit);
        None
    }

    /// Writes `local`, memory of this process and the key that it is registered with, to memory of a peer without
    /// messages for its bytes, as far as the keys of that memory and of `permit` allow it, which the peer has
    /// registered both. Returns `false` if messages have to carry it: the write is too short or too long for
    /// anything else, or the key of `local` is not registered.
    ///
    /// The caller may hold locks: an implementation calls nobody of this program and does not panic.
    ///
    /// **Completion**: delivered: a [`RailEvent::Completed`] with `context` follows a `true`, unless the
    /// write is [cancelled](Self::cancel_long). A claim that the peer refuses has the status
    /// [`RemoteAccess`](crate::CompletionStatus::RemoteAccess).
    ///
    /// **Errors**: those of [`write`](Self::write).
    ///
    /// # Safety
    ///
    /// The memory must be valid for reads, and be changed by nobody, until the write has ended, or
    /// [`cancel_long`](Self::cancel_long) has returned, or [`deregister`](Self::deregister) with its key has.
    unsafe fn write_long(
        &self,
        to: u32,
        local: (NonNull<[u8]>, &RailKey),
        remote: &RailAddress,
        permit: &RailKey,
        context: u64,
    ) -> Result<bool, RailError> {
        let _ = (to, local, remote, permit, context);
        Ok(false)
    }

    /// Reads memory of a peer without messages for its bytes; otherwise as [`write_long`](Self::write_long).
    ///
    /// **Completion**: the bytes are in `local`.
    ///
    /// # Safety
    ///
    /// The memory must be valid for writes, and be used by nobody else, for as long.
    unsafe fn read_long(
        &self,
        to: u32,
        local: (NonNull<[u8]>, &RailKey),
        remote: &RailAddress,
        permit: &RailKey,
        context: u64,
    ) -> Result<bool, RailError> {
        let _ = (to, local, remote, permit, context);
        Ok(false)
    }

    /// Cancels the [`write_long`](Self::write_long) or [`read_long`](Self::read_long) to a process with this context.
    /// Afterwards the rail does not use its memory. A completion that was not passed on may still follow.
    ///
    /// The caller may hold locks, as for [`write_long`](Self::write_long).
    fn cancel_long(&self, to: u32, context: u64) {
        let _ = (to, context);
    }

    /// Passes a batch of events to `sink`, goes on with operations under way, and returns the number
    /// of events and of parts of operations that have ended: 0 while another thread polls.
    ///
    /// `sink` may call any function of the rail except this one.
    fn poll(&self, sink: &mut dyn FnMut(RailEvent<'_>)) -> usize;

    /// Returns `true` if something that this process sends has not left it, because peers have not
    /// taken what was sent before. A later [`poll`](Self::poll) sends it.
    fn has_unsent(&self) -> bool;

    /// Returns `true` if a [`poll`](Self::poll) has found a process lost. Rails that keep no record of
    /// that return `false`.
    fn is_lost(&self, process: u32) -> bool {
        let _ = process;
        false
    }

    /// Gives up a process that shows no life, which may still be there: it is lost with the next
    /// [`poll`](Self::poll), with [`LossReason::Silent`]. Who sleeps is woken. Memory that the process may
    /// be about to use stays registered: see [`deregister`](Self::deregister).
    fn give_up(&self, process: u32) {
        let _ = process;
    }

    /// Announces that the caller is about to sleep, and says what it may sleep on. The next
    /// [`poll`](Self::poll) takes the announcement back.
    fn arm(&self) -> Armed<'_>;

    /// Returns `true` if the object that [`arm`](Self::arm) returns also becomes readable once a process has made
    /// room: an operation to it was refused for want of room before `arm` was called, and nothing has been taken
    /// there since.
    fn announces_room(&self, to: u32) -> bool {
        let _ = to;
        false
    }
}
