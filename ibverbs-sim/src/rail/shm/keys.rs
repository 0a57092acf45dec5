//! The key table of a process in shared memory, against which its peers check their own claims.
//!
//! The owner opens and closes keys, and never reads them here: it has a table of its own. The fields
//! of a key change only while it is closed and no use is under way (see `words`).

use talpf_primitives::{AtomicU64, Ordering};

use crate::{
    Access,
    rail::{frame::KeyClaim, registrations::KeyNumber},
};

/// Bit of the flags: the memory lies in the memory file of its owner.
const IN_FILE: u64 = 1 << 8;

/// A key: memory that peers may use, or closed.
#[repr(C, align(32))]
pub(super) struct KeySlot {
    /// Generation of the key, 0 while it is closed.
    generation: AtomicU64,
    start: AtomicU64,
    length: AtomicU64,
    flags: AtomicU64,
}

/// Location of memory that is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerMemory {
    /// Offset in the memory file of the peer.
    File(u64),
    /// Address in the peer's own memory.
    Process(u64),
}

impl PeerMemory {
    const fn parts(self) -> (u64, u64) {
        match self {
            Self::File(offset) => (offset, IN_FILE),
            Self::Process(address) => (address, 0),
        }
    }
}

impl KeySlot {
    /// Opens the key. It is closed, and no use of it is under way.
    pub(super) fn open(&self, key: KeyNumber, memory: PeerMemory, length: usize, access: Access) {
        let (start, flag) = memory.parts();
        self.start.store(start, Ordering::Relaxed);
        self.length.store(length as u64, Ordering::Relaxed);
        self.flags.store(flag | u64::from(access.bits()), Ordering::Relaxed);
        self.generation.store(u64::from(key.generation), Ordering::Release);
    }

    /// Closes the key, if the slot is open for it. Uses may be under way.
    pub(super) fn close(&self, key: KeyNumber) {
        let (open, closed) = (u64::from(key.generation), 0);
        let _ = self.generation.compare_exchange(open, closed, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Checks a claim to `length` bytes within a use. Returns where its first byte is.
    #[inline]
    pub(super) fn check(&self, claim: KeyClaim, length: u64, needed: Access) -> Option<PeerMemory> {
        let generation = u64::from(KeyNumber::from_claim(claim.key).generation);
        if generation == 0 || self.generation.load(Ordering::Acquire) != generation {
            return None;
        }
        let flags = self.flags.load(Ordering::Relaxed);
        let bytes = self.length.load(Ordering::Relaxed);
        let is_allowed = Access::from_bits(flags as u8).contains(needed);
        if !is_allowed || claim.offset > bytes || length > bytes - claim.offset {
            return None;
        }
        let first = self.start.load(Ordering::Relaxed).checked_add(claim.offset)?;
        Some(if flags & IN_FILE == 0 {
            PeerMemory::Process(first)
        } else {
            PeerMemory::File(first)
        })
    }
}
