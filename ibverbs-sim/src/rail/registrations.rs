#![allow(unsafe_code, reason = "a checked claim becomes a pointer")]
//! Registrations: the memory of this process that peers may use, by key.
//!
//! A claim is checked, and its memory used, under the read lock; a registration ends under the write
//! lock, so nobody uses its memory afterwards.

use std::ptr::NonNull;

use parking_lot::RwLock;

use super::{RailError, frame::KeyClaim};
use crate::Access;

/// Most registrations at a time.
pub(super) const MAX_KEYS: usize = 4096;

pub(super) struct Registrations(RwLock<Entries>);

struct Entries {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

struct Entry {
    /// Number that makes the keys of one index different, never 0 while the entry is in use.
    generation: u32,
    memory: Option<(NonNull<[u8]>, Access)>,
}

// SAFETY: `register` was promised that the memory may be used from any thread.
unsafe impl Send for Entry {}
// SAFETY: as above.
unsafe impl Sync for Entry {}

/// Number of a key: the index of its entry, and the generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyNumber {
    pub(super) index: usize,
    pub(super) generation: u32,
}

impl KeyNumber {
    pub(super) fn from_claim(key: u64) -> Self {
        Self { index: key as u32 as usize, generation: (key >> 32) as u32 }
    }

    pub(super) fn number(self) -> u64 {
        self.index as u64 | u64::from(self.generation) << 32
    }
}

impl Registrations {
    pub(super) fn new() -> Self {
        Self(RwLock::new(Entries { entries: Vec::new(), free: Vec::new() }))
    }

    /// Registers memory.
    ///
    /// # Safety
    ///
    /// The contract of [`Rail::register`](super::Rail::register), until [`remove`](Self::remove).
    pub(super) unsafe fn insert(
        &self,
        memory: NonNull<[u8]>,
        access: Access,
    ) -> Result<KeyNumber, RailError> {
        let mut all = self.0.write();
        let index = match all.free.pop() {
            Some(index) => index as usize,
            None if all.entries.len() == MAX_KEYS => {
                return Err(RailError::TooManyKeys { limit: MAX_KEYS });
            }
            None => {
                all.entries.push(Entry { generation: 0, memory: None });
                all.entries.len() - 1
            }
        };
        let entry = &mut all.entries[index];
        entry.generation = entry.generation.wrapping_add(1).max(1);
        entry.memory = Some((memory, access));
        Ok(KeyNumber { index, generation: entry.generation })
    }

    /// Returns `true` if the key is registered.
    pub(super) fn contains(&self, key: KeyNumber) -> bool {
        let all = self.0.read();
        all.entries.get(key.index).is_some_and(|entry| entry.is(key))
    }

    /// Returns the memory of a registration.
    pub(super) fn memory(&self, key: KeyNumber) -> Option<NonNull<[u8]>> {
        let all = self.0.read();
        let entry = all.entries.get(key.index).filter(|entry| entry.is(key))?;
        entry.memory.map(|(memory, _)| memory)
    }

    /// Ends a registration.
    pub(super) fn remove(&self, key: KeyNumber) -> Result<(), RailError> {
        self.retire(key)?;
        self.0.write().free.push(key.index as u32);
        Ok(())
    }

    /// Ends a registration whose index no other one gets.
    pub(super) fn retire(&self, key: KeyNumber) -> Result<(), RailError> {
        let mut all = self.0.write();
        let entry = all.entries.get_mut(key.index).filter(|entry| entry.is(key));
        entry.ok_or(RailError::NotRegistered)?.memory = None;
        Ok(())
    }

    /// Passes the key and the memory of each registration to `action`.
    pub(super) fn for_each(&self, mut action: impl FnMut(KeyNumber, NonNull<[u8]>)) {
        for (index, entry) in self.0.read().entries.iter().enumerate() {
            if let Some((memory, _)) = entry.memory {
                action(KeyNumber { index, generation: entry.generation }, memory);
            }
        }
    }

    /// Passes the start of claimed memory to `action`, which may use `length` bytes from there as
    /// `needed` says. Returns `None` for a claim that is refused.
    pub(super) fn with<R>(
        &self,
        claim: KeyClaim,
        length: u64,
        needed: Access,
        action: impl FnOnce(NonNull<u8>) -> R,
    ) -> Option<R> {
        let key = KeyNumber::from_claim(claim.key);
        let all = self.0.read();
        let entry = all.entries.get(key.index).filter(|entry| entry.is(key))?;
        let (memory, access) = entry.memory?;
        let bytes = memory.len() as u64;
        if !access.contains(needed) || claim.offset > bytes || length > bytes - claim.offset {
            return None;
        }
        // SAFETY: the offset is at most the length of the registered memory.
        let start = unsafe { memory.cast::<u8>().add(claim.offset as usize) };
        Some(action(start))
    }

    /// Returns claimed memory, for what `needed` says as long as the keys are registered. `permit` is the number of a
    /// second key that the claim needs; 0 for none.
    pub(super) fn claimed(
        &self,
        claim: KeyClaim,
        permit: u64,
        length: usize,
        needed: Access,
    ) -> Option<NonNull<[u8]>> {
        if permit != 0 {
            self.with(KeyClaim { key: permit, offset: 0 }, 0, needed, |_| ())?;
        }
        let start = self.with(claim, length as u64, needed, |start| start)?;
        Some(NonNull::slice_from_raw_parts(start, length))
    }
}

impl Entry {
    fn is(&self, key: KeyNumber) -> bool {
        self.memory.is_some() && self.generation == key.generation
    }
}
