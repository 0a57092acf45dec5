//! The memory regions of a device, by key.
//!
//! A key is the index of a slot and, above it, the generation of the slot's use, so that the key of
//! a deregistered region does not open the next region in the slot. Generations are counted for all
//! devices of the process together: the key of one device does not open a region of another, or of
//! a later one. A key is used again after 4,096 registrations in slots of its index.
//!
//! A lookup takes no lock; opening and closing lock one list of free slots of the domain.

use std::{
    num::NonZeroU32,
    ptr::NonNull,
    sync::atomic::{AtomicU16, Ordering},
};

use crate::{
    Access, Error, Result,
    checked::{Checked, Claim, Refused, RegionSlot, ToWrite, Writable},
    gate::GateHeld,
    slab::{INDEX_BITS, Slab},
};

/// A key by which the owner names a region in scatter/gather lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LocalKey(pub(crate) u32);

/// A key by which peers name a region. It may be sent as a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RemoteKey(pub(crate) u32);

impl RemoteKey {
    /// Returns the number to send to a peer.
    pub const fn to_u32(self) -> u32 {
        self.0
    }

    /// Makes a key of a number that a peer has sent. A wrong key is refused when it is used.
    pub const fn from_u32(key: u32) -> Self {
        Self(key)
    }
}

/// The table of a device's regions.
pub(crate) struct KeyTable {
    slots: Slab<RegionSlot>,
    limit: u32,
}

/// The next generations of the slots of all devices.
static GENERATIONS: [AtomicU16; 1 << INDEX_BITS] = [const { AtomicU16::new(0) }; 1 << INDEX_BITS];

/// Returns the next generation of the slots of `index`. The counters of consecutive indices are on
/// different cache lines, as several threads may register at the same time.
fn next_generation(index: u32) -> u32 {
    const LINE_SHIFT: u32 = 6;
    let place = (index << LINE_SHIFT | index >> (INDEX_BITS - LINE_SHIFT)) % (1 << INDEX_BITS);
    u32::from(GENERATIONS[place as usize].fetch_add(1, Ordering::Relaxed))
}

impl KeyTable {
    pub(crate) fn new(limit: u32) -> Self {
        Self { slots: Slab::new(limit), limit }
    }

    /// Opens a slot for memory and returns its key.
    ///
    /// # Safety
    ///
    /// As [`RegionSlot::open`], until [`KeyTable::close`] and a wait for the holders of the
    /// device's gates.
    #[allow(unsafe_code, reason = "passes the contract of `RegionSlot::open` on")]
    pub(crate) unsafe fn open(
        &self,
        start: NonNull<u8>,
        length: usize,
        domain: NonZeroU32,
        access: Access,
    ) -> Result<u32> {
        let limit = u64::from(self.limit);
        let full = Error::LimitExceeded { what: "max_mr", requested: limit + 1, limit };
        let (index, slot) = self.slots.allocate(domain.get()).ok_or(full)?;
        let key = tag(index, next_generation(index)) << INDEX_BITS | index;
        // SAFETY: the caller's contract; the slot was free, so it is closed.
        unsafe { slot.open(key, start, length, domain, access) };
        Ok(key)
    }

    /// Closes the slot of a key: later checks refuse the key.
    pub(crate) fn close(&self, key: u32) {
        if let Some(slot) = self.slots.get(index(key)) {
            slot.close();
        }
    }

    /// Makes the slot of a closed key available again, once no hold is under way that saw it open.
    /// `domain` is the owner of the slot.
    pub(crate) fn release(&self, key: u32, domain: NonZeroU32) {
        self.slots.release(index(key), domain.get());
    }

    /// Checks a claim made on behalf of `domain` that needs the rights in `needed`.
    #[inline]
    pub(crate) fn check<'guard>(
        &self,
        claim: Claim,
        domain: NonZeroU32,
        needed: Access,
        held: GateHeld<'guard>,
    ) -> Result<Checked<'guard>, Refused> {
        let slot = self.slots.get(index(claim.key)).ok_or(Refused)?;
        slot.check(claim, domain, needed, held)
    }

    /// Checks a claim that needs a right to write.
    #[inline]
    pub(crate) fn check_to_write<'guard>(
        &self,
        claim: Claim,
        domain: NonZeroU32,
        needed: ToWrite,
        held: GateHeld<'guard>,
    ) -> Result<Writable<'guard>, Refused> {
        let slot = self.slots.get(index(claim.key)).ok_or(Refused)?;
        slot.check_to_write(claim, domain, needed, held)
    }
}

#[inline]
fn index(key: u32) -> u32 {
    key & ((1 << INDEX_BITS) - 1)
}

/// Computes the upper bits of a key: they start at another value for every slot, and key 0 is never
/// the first.
fn tag(index: u32, generation: u32) -> u32 {
    index.wrapping_mul(0x9e37_79b9).rotate_left(12).wrapping_add(generation).wrapping_add(1)
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
