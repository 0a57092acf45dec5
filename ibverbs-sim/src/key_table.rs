//! The regions of a device, by key.
//!
//! A key is a slot's index and, above it, the generation of the slot's use, so that the key of a
//! deregistered region does not open the one that follows it. Look-up takes no lock; opening and
//! closing lock one list of free slots of the domain.

use std::ptr::NonNull;

use crate::{
    Access, Error, Result,
    checked::{Checked, Claim, Refused, RegionSlot},
    gate::Held,
    slab::{INDEX_BITS, Slab},
    sync::{AtomicU32, Ordering},
};

/// The key by which the owner names a region in scatter/gather lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LocalKey(pub(crate) u32);

/// The key by which peers name a region. It may travel as a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RemoteKey(pub(crate) u32);

impl RemoteKey {
    /// The number to send to a peer.
    pub const fn to_u32(self) -> u32 {
        self.0
    }

    /// A key that a peer has sent. A wrong one is refused when it is used.
    pub const fn from_u32(key: u32) -> Self {
        Self(key)
    }
}

/// See the module text.
pub(crate) struct KeyTable {
    slots: Slab<Entry>,
    limit: u32,
}

#[derive(Default)]
struct Entry {
    generation: AtomicU32,
    region: RegionSlot,
}

impl KeyTable {
    pub(crate) fn new(limit: u32) -> Self {
        Self { slots: Slab::new(limit), limit }
    }

    /// Registers memory and gives its key.
    ///
    /// # Safety
    ///
    /// As [`RegionSlot::open`], until [`KeyTable::close`] and a wait for the device's holds.
    #[allow(unsafe_code, reason = "passes the contract of `RegionSlot::open` on")]
    pub(crate) unsafe fn open(
        &self,
        start: NonNull<u8>,
        length: usize,
        domain: u32,
        access: Access,
    ) -> Result<u32> {
        let limit = u64::from(self.limit);
        let full = Error::LimitExceeded { what: "max_mr", requested: limit + 1, limit };
        let (index, entry) = self.slots.allocate(domain).ok_or(full)?;
        let generation = entry.generation.fetch_add(1, Ordering::Relaxed);
        let key = tag(index, generation) << INDEX_BITS | index;
        // SAFETY: the caller's contract; the slot was free, so it is closed.
        unsafe { entry.region.open(key, start, length, domain, access) };
        Ok(key)
    }

    /// Refuses the key from now on.
    pub(crate) fn close(&self, key: u32) {
        if let Some(entry) = self.slots.get(index(key)) {
            entry.region.close();
        }
    }

    /// Lets a closed key's slot be used again, once no hold that saw it open is under way. `domain`
    /// had it.
    pub(crate) fn release(&self, key: u32, domain: u32) {
        self.slots.release(index(key), domain);
    }

    /// Checks a claim made on behalf of `domain` that needs the rights in `needed`.
    #[inline]
    pub(crate) fn check<'hold>(
        &self,
        claim: Claim,
        domain: u32,
        needed: Access,
        held: Held<'hold>,
    ) -> Result<Checked<'hold>, Refused> {
        let entry = self.slots.get(index(claim.key)).ok_or(Refused)?;
        entry.region.check(claim, domain, needed, held)
    }
}

#[inline]
fn index(key: u32) -> u32 {
    key & ((1 << INDEX_BITS) - 1)
}

/// Starts somewhere else for every slot, and never gives key 0 to the first region.
fn tag(index: u32, generation: u32) -> u32 {
    index.wrapping_mul(0x9e37_79b9).rotate_left(12).wrapping_add(generation).wrapping_add(1)
}
