//! Table of slots of one process and one kind.
//!
//! Its process writes it. Others read that of global slots as they resolve the addresses of their operations, and
//! the program may register at the same time. So the entries are atomics; an entry that another process reads was
//! active since a barrier, unless the program is wrong, and then what it reads is checked like any other number.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::error::{Error, Result};
use crate::memory::Address;
use crate::misuse::{Misuse, Side};
use crate::slot_id::{MOST_SLOTS, SlotId};

/// State of an entry, the lowest bits of its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotState {
    Free = 0,
    /// Registered, and active from the next sync on.
    Inactive = 1,
    Active = 2,
}

/// Slot of a table.
#[derive(Default)]
struct Entry {
    /// Generation and state.
    word: AtomicU64,
    address: AtomicUsize,
    size: AtomicUsize,
}

/// Slots of one process and one kind.
pub(crate) struct SlotTable {
    entries: Box<[Entry]>,
}

/// Memory of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    address: Address,
    size: usize,
}

impl Extent {
    /// Returns the address of `size` bytes at `offset`, if they are inside.
    #[inline(always)]
    pub(crate) fn at(self, offset: usize, size: usize) -> Option<Address> {
        let is_inside = offset <= self.size && size <= self.size - offset;
        is_inside.then(|| self.address.at(offset))
    }
}

impl SlotTable {
    /// Makes a table of free slots.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub(crate) fn new(capacity: usize) -> Result<Self> {
        let mut entries = Vec::new();
        let fits = capacity <= MOST_SLOTS && entries.try_reserve_exact(capacity).is_ok();
        if !fits {
            return Err(Error::OutOfMemory);
        }
        entries.resize_with(capacity, Entry::default);
        Ok(SlotTable { entries: entries.into_boxed_slice() })
    }

    pub(crate) fn capacity(&self) -> usize {
        self.entries.len()
    }

    /// Takes over the slots of a smaller table.
    pub(crate) fn copy_from(&self, smaller: &SlotTable) {
        for (new, old) in self.entries.iter().zip(&smaller.entries) {
            new.address.store(old.address.load(Ordering::Relaxed), Ordering::Relaxed);
            new.size.store(old.size.load(Ordering::Relaxed), Ordering::Relaxed);
            new.word.store(old.word.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Puts memory into a free slot, and returns its generation.
    pub(crate) fn fill(
        &self,
        index: usize,
        address: Address,
        size: usize,
        state: SlotState,
    ) -> u32 {
        let entry = &self.entries[index];
        entry.address.store(address.0, Ordering::Relaxed);
        entry.size.store(size, Ordering::Relaxed);
        let generation = entry.word.load(Ordering::Relaxed) >> 2;
        entry.word.store(generation << 2 | state as u64, Ordering::Release);
        generation as u32
    }

    /// Makes a slot active.
    pub(crate) fn activate(&self, index: usize) {
        let entry = &self.entries[index];
        let word = entry.word.load(Ordering::Relaxed);
        if word & 3 == SlotState::Inactive as u64 {
            entry.word.store(word & !3 | SlotState::Active as u64, Ordering::Release);
        }
    }

    /// Frees a slot, whose next generation begins.
    pub(crate) fn free(&self, index: usize) {
        let entry = &self.entries[index];
        let generation = (entry.word.load(Ordering::Relaxed) >> 2) as u32;
        entry.word.store(u64::from(generation.wrapping_add(1)) << 2, Ordering::Release);
    }

    /// Returns `true` if a slot is active.
    #[inline(always)]
    pub(crate) fn is_active(&self, slot: SlotId) -> bool {
        let active = u64::from(slot.generation()) << 2 | SlotState::Active as u64;
        let entry = self.entries.get(slot.index());
        entry.is_some_and(|entry| entry.word.load(Ordering::Acquire) == active)
    }

    /// Returns the state of a slot, free if its number is of another generation.
    #[inline]
    pub(crate) fn state(&self, slot: SlotId) -> SlotState {
        let Some(entry) = self.entries.get(slot.index()) else { return SlotState::Free };
        let word = entry.word.load(Ordering::Acquire);
        match (word >> 2 == u64::from(slot.generation()), word & 3) {
            (true, 1) => SlotState::Inactive,
            (true, 2) => SlotState::Active,
            _ => SlotState::Free,
        }
    }

    /// Returns the memory of an active slot.
    #[inline]
    pub(crate) fn find(&self, slot: SlotId) -> Option<Extent> {
        let entry = self.entries.get(slot.index())?;
        let word = entry.word.load(Ordering::Acquire);
        let active = u64::from(slot.generation()) << 2 | SlotState::Active as u64;
        let address = Address(entry.address.load(Ordering::Relaxed));
        let size = entry.size.load(Ordering::Relaxed);
        (word == active).then_some(Extent { address, size })
    }

    /// Returns the address of `size` bytes at `offset` of a slot that is not free.
    ///
    /// # Errors
    ///
    /// A misuse if they are not inside of it. No bytes lie anywhere.
    #[inline]
    pub(crate) fn resolve(
        &self,
        slot: SlotId,
        offset: usize,
        size: usize,
        side: Side,
    ) -> std::result::Result<Address, Misuse> {
        let entry = self.entries.get(slot.index());
        let entry = entry.filter(|entry| {
            let word = entry.word.load(Ordering::Acquire);
            word >> 2 == u64::from(slot.generation()) && word & 3 != SlotState::Free as u64
        });
        let Some(entry) = entry else { return Err(Misuse::UnknownSlot(slot.0, side)) };
        let whole = entry.size.load(Ordering::Relaxed);
        if size > 0 && (offset > whole || size > whole - offset) {
            return Err(out_of_bounds(side, offset, size, whole));
        }
        Ok(Address(entry.address.load(Ordering::Relaxed)).at(offset))
    }
}

/// Returns the mistake of bytes that are not inside of a slot.
#[cold]
fn out_of_bounds(side: Side, offset: usize, size: usize, slot: usize) -> Misuse {
    match offset.checked_add(size) {
        Some(end) => Misuse::OutOfBounds { side, offset, end, slot },
        None => Misuse::Overflow { side, offset, size },
    }
}
