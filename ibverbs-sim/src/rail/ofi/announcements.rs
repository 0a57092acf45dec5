#![allow(unsafe_code, reason = "bytes are copied to memory that peers read")]
//! Announcements: long writes of this process, whose bytes their targets read.
//!
//! The bytes of a write are copied to memory of this crate that peers may read, and its target gets an
//! *announcement* of them. It checks the claim, reads the bytes to where they belong, and answers; the blocks
//! of the announcement are free then. So peers use no other memory of this process, however they end, and the
//! provider writes to no memory that its owner has not passed to it.

use std::{
    collections::VecDeque,
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
    endpoint::{Endpoint, Registered},
    memory::PacketMemory,
    outgoing::Packets,
    packet::{Announcement, Control},
    reader::Exposed,
};
use crate::{
    CompletionStatus,
    rail::{RailError, RailEvent, frame::Malformed},
};

/// Blocks of the memory that peers may read.
pub(super) const BLOCKS: usize = u128::BITS as usize;
/// Bytes of a block. All of them fit the cache of a processor: bytes are copied to those that were used
/// last.
pub(super) const BLOCK_BYTES: usize = 32 << 10;
/// Most bytes of an announcement.
pub(super) const MAX_BYTES: usize = BLOCKS / 2 * BLOCK_BYTES;
/// Attempts to register memory under a key that is in use.
const ATTEMPTS: u64 = 8;

/// Announcements of this process.
pub(super) struct Announcements {
    /// Registration of the memory. Closed before the endpoint.
    registered: Registered,
    has_addresses: bool,
    /// Owned by the rail as well, which closes the endpoint first.
    memory: Arc<PacketMemory>,
    state: Mutex<State>,
    has_unsent: AtomicBool,
}

struct State {
    /// Blocks that no announcement has.
    free: u128,
    /// Blocks that a process which was given up may read at any time, so that nobody uses them again.
    unusable: u128,
    /// Announcements under way, by their first blocks.
    under_way: Box<[Option<UnderWay>]>,
    /// First blocks of announcements that were not sent, the oldest first.
    unsent: VecDeque<u32>,
}

/// An announcement that was not answered.
#[derive(Clone, Copy)]
struct UnderWay {
    to: u32,
    context: u64,
    announcement: Announcement,
}

/// A write that is announced.
pub(super) struct LongWrite {
    pub(super) local: NonNull<[u8]>,
    pub(super) announcement: Announcement,
    pub(super) context: u64,
}

impl Announcements {
    /// Registers memory for announcements.
    pub(super) fn new(endpoint: &Endpoint, run: u64) -> Result<Self, OfiError> {
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
            state: Mutex::new(State::new()),
            has_unsent: AtomicBool::new(false),
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

    /// Announces the bytes of a write; they are copied. `None` if no announcement can have as many.
    ///
    /// # Safety
    ///
    /// The memory of the write must be valid for reads, and be changed by nobody, during the call.
    pub(super) unsafe fn post(
        &self,
        to: u32,
        write: LongWrite,
        packets: &Packets<'_>,
    ) -> Option<Result<(), RailError>> {
        let LongWrite { local, mut announcement, context } = write;
        if local.len() > MAX_BYTES {
            return None;
        }
        let first = match self.state.lock().take(blocks(local.len())) {
            Ok(first) => first,
            Err(Taken) => return Some(Err(RailError::NoRoom { process: to })),
            Err(Unusable) => return None,
        };
        // SAFETY: the contract of this function.
        let bytes = unsafe { slice::from_raw_parts(local.cast().as_ptr(), local.len()) };
        // SAFETY: this announcement has the blocks.
        unsafe { self.memory.write(first as usize * BLOCK_BYTES, [bytes, &[]]) };
        (announcement.block, announcement.length) = (first, local.len() as u32);
        let mut state = self.state.lock();
        if packets.outgoing.peer(to).is_none_or(|peer| peer.is_lost()) {
            state.give_back(&announcement);
            return Some(Err(RailError::Lost { process: to }));
        }
        state.under_way[first as usize] = Some(UnderWay { to, context, announcement });
        state.unsent.push_back(first);
        self.send(&mut state, packets);
        Some(Ok(()))
    }

    /// Sends announcements for which there was no room.
    pub(super) fn resume(&self, packets: &Packets<'_>) {
        if self.has_unsent() {
            self.send(&mut self.state.lock(), packets);
        }
    }

    /// Returns `true` if there was no room for an announcement.
    pub(super) fn has_unsent(&self) -> bool {
        self.has_unsent.load(Ordering::Relaxed)
    }

    /// Returns `true` if an announcement to a process was not answered.
    pub(super) fn has_under_way(&self, to: u32) -> bool {
        let state = self.state.lock();
        state.under_way.iter().flatten().any(|announcement| announcement.to == to)
    }

    fn send(&self, state: &mut State, packets: &Packets<'_>) {
        let State { unsent, under_way, .. } = state;
        unsent.retain(|first| {
            let announcement = under_way[*first as usize];
            announcement.is_some_and(|it| {
                !packets.push_control(it.to, Control::Announcement(it.announcement))
            })
        });
        self.has_unsent.store(!state.unsent.is_empty(), Ordering::Relaxed);
    }

    /// Takes the answer to an announcement.
    pub(super) fn answered(
        &self,
        from: u32,
        block: u32,
        status: CompletionStatus,
    ) -> Result<RailEvent<'static>, Malformed> {
        let mut state = self.state.lock();
        let place = state.under_way.get_mut(block as usize);
        let ended = place.and_then(|place| place.take_if(|announcement| announcement.to == from));
        let UnderWay { context, announcement, .. } =
            ended.ok_or(Malformed("the end of no announcement"))?;
        state.give_back(&announcement);
        Ok(RailEvent::Completed { context, status })
    }

    /// Ends all announcements to a process that is lost. `is_gone` if it reads no more.
    pub(super) fn lose(
        &self,
        process: u32,
        is_gone: bool,
        sink: &mut dyn FnMut(RailEvent<'static>),
    ) {
        let mut state = self.state.lock();
        for first in 0..BLOCKS {
            let lost = state.under_way[first].take_if(|announcement| announcement.to == process);
            let Some(UnderWay { context, announcement, .. }) = lost else { continue };
            // Who is silent may go on, and would read the bytes of a later announcement as those of this one.
            if is_gone {
                state.give_back(&announcement);
            } else {
                state.unusable |= announcement.mask();
            }
            sink(RailEvent::Completed { context, status: CompletionStatus::RetryExceeded });
        }
    }
}

impl Announcement {
    /// Returns the blocks of the announcement, a bit for each.
    fn mask(&self) -> u128 {
        mask(self.block, blocks(self.length as usize))
    }
}

fn blocks(bytes: usize) -> u32 {
    bytes.div_ceil(BLOCK_BYTES).max(1) as u32
}

fn mask(first: u32, count: u32) -> u128 {
    (u128::MAX >> (u128::BITS - count)) << first
}

/// Reason for which an announcement gets no blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoBlocks {
    /// Other announcements have them.
    Taken,
    /// Too many are unusable.
    Unusable,
}
use NoBlocks::{Taken, Unusable};

impl State {
    fn new() -> Self {
        Self {
            free: u128::MAX,
            unusable: 0,
            under_way: vec![None; BLOCKS].into_boxed_slice(),
            unsent: VecDeque::with_capacity(BLOCKS),
        }
    }

    /// Takes blocks that lie one behind the other, and returns the first one.
    fn take(&mut self, count: u32) -> Result<u32, NoBlocks> {
        let first = find(self.free, count)
            .ok_or_else(|| if find(!self.unusable, count).is_some() { Taken } else { Unusable })?;
        self.free &= !mask(first, count);
        Ok(first)
    }

    fn give_back(&mut self, announcement: &Announcement) {
        self.free |= announcement.mask();
    }
}

/// Returns the first bit of so many that are set one behind the other.
fn find(bits: u128, count: u32) -> Option<u32> {
    let starts = (1..count).fold(bits, |starts, nth| starts & bits >> nth);
    (starts != 0).then(|| starts.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_one_behind_the_other_and_belong_to_one_announcement() {
        let mut state = State::new();
        assert_eq!([1, 64, 3].map(|count| state.take(count)), [Ok(0), Ok(1), Ok(65)]);
        assert_eq!(state.take(61), Err(Taken));
        assert_eq!(state.take(60), Ok(68));
        assert_eq!(state.take(1), Err(Taken));
        let length = (64 * BLOCK_BYTES) as u32;
        state.give_back(&Announcement { block: 1, length, ..Announcement::default() });
        assert_eq!([32, 33].map(|count| state.take(count)), [Ok(1), Err(Taken)]);
        assert_eq!(state.take(32), Ok(33));
    }

    #[test]
    fn blocks_that_are_unusable_are_not_waited_for() {
        let mut state = State::new();
        let first = state.take(64).unwrap();
        state.unusable |= mask(first, 64);
        assert_eq!(state.take(65), Err(Unusable));
        assert_eq!(state.take(64), Ok(64));
        assert_eq!(state.take(64), Err(Taken));
    }

    #[test]
    fn announcements_take_as_many_blocks_as_they_need() {
        let of = [0, 1, BLOCK_BYTES, BLOCK_BYTES + 1, MAX_BYTES].map(blocks);
        assert_eq!(of, [1, 1, 1, 2, 64]);
        assert_eq!((mask(0, 128), mask(127, 1), mask(1, 2)), (u128::MAX, 1 << 127, 6));
    }
}
