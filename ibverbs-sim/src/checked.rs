#![allow(unsafe_code, reason = "the only place where a checked claim becomes a pointer")]
//! Checked memory: the step from a claim to a pointer.
//!
//! The address, length and key that a work request or a peer states are a [`Claim`]. It is checked
//! against a [`RegionSlot`]: key, protection domain, rights, range. Only the result gives access to
//! memory: a [`Checked`] can be read, a [`Writable`], which requires a right to write, can be
//! written too. A `Checked` borrows the proof that a gate is held ([`GateHeld`]), so it cannot
//! outlive the hold, and closing a slot is followed by a wait for all holds under way from which
//! such a claim may come: memory stays valid while a `Checked` of it exists.
//!
//! Copies are ordinary memory copies, except that the last eight bytes, where they end aligned, are
//! written in one atomic access after all others: their owner may poll them. Two accesses to the
//! same bytes at the same time, one of them a write, are excluded by the contract of registration
//! unless both are atomic.

use std::{
    marker::PhantomData,
    num::NonZeroU32,
    ptr::{self, NonNull},
    sync::atomic::AtomicU64 as Word,
};

use talpf_primitives::{AtomicPtr, AtomicU8, AtomicU64, Ordering};

use crate::{Access, WordUpdate, gate::GateHeld};

/// A statement about memory that is not checked yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) address: u64,
    pub(crate) length: u64,
    pub(crate) key: u32,
}

/// A right to write that a claim requires.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ToWrite {
    Local,
    Remote,
    Atomic,
}

impl ToWrite {
    #[inline]
    pub(crate) const fn access(self) -> Access {
        match self {
            Self::Local => Access::LOCAL_WRITE,
            Self::Remote => Access::REMOTE_WRITE,
            Self::Atomic => Access::REMOTE_ATOMIC,
        }
    }
}

/// Error of a check. It does not say which part of the claim failed, as on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

/// A slot of the key table: a registered region, or free.
///
/// `name` is 0 while the slot is closed, otherwise the domain (high half, never 0) and the key of
/// the region. The other fields change only while the slot is closed and no hold is under way that
/// may have seen it open with these fields: the holds that closing waits for are those on behalf of
/// its domain, which is why claims are compared with domain and key in one word. A slot that is
/// opened again for another domain in the meantime is refused to the holders of both.
#[derive(Debug, Default)]
pub(crate) struct RegionSlot {
    name: AtomicU64,
    start: AtomicPtr<u8>,
    length: AtomicU64,
    access: AtomicU8,
}

/// Combines domain and key of a region in one word that is not 0.
#[inline]
fn name(domain: NonZeroU32, key: u32) -> u64 {
    u64::from(domain.get()) << 32 | u64::from(key)
}

impl RegionSlot {
    /// Opens the slot: claims with `key` pass the check.
    ///
    /// # Safety
    ///
    /// Until the slot is closed and every hold under way at that time has ended that checks claims
    /// on behalf of `domain`, `start` must be valid for reads of `length` bytes, and for writes if
    /// `access` has any right to write, with no Rust reference that conflicts with what the device
    /// does. The slot is closed.
    pub(crate) unsafe fn open(
        &self,
        key: u32,
        start: NonNull<u8>,
        length: usize,
        domain: NonZeroU32,
        access: Access,
    ) {
        self.start.store(start.as_ptr(), Ordering::Relaxed);
        self.length.store(length as u64, Ordering::Relaxed);
        self.access.store(access.bits(), Ordering::Relaxed);
        self.name.store(name(domain, key), Ordering::SeqCst);
    }

    /// Closes the slot: every later check fails. Checks that were made before are valid until their
    /// holds end.
    pub(crate) fn close(&self) {
        self.name.store(0, Ordering::SeqCst);
    }

    /// Checks a claim made on behalf of `domain` that needs the rights in `needed`.
    #[inline]
    pub(crate) fn check<'guard>(
        &self,
        claim: Claim,
        domain: NonZeroU32,
        needed: Access,
        _held: GateHeld<'guard>,
    ) -> Result<Checked<'guard>, Refused> {
        if self.name.load(Ordering::SeqCst) != name(domain, claim.key) {
            return Err(Refused);
        }
        let start = self.start.load(Ordering::Relaxed);
        let length = self.length.load(Ordering::Relaxed);
        let access = Access::from_bits(self.access.load(Ordering::Relaxed));
        // An address below the start wraps to an offset far past the end.
        let offset = claim.address.wrapping_sub(start.addr() as u64);
        let in_range = offset <= length && claim.length <= length - offset;
        if !in_range || !access.contains(needed) {
            return Err(Refused);
        }
        Ok(Checked {
            start: start.wrapping_add(offset as usize),
            length: claim.length as usize,
            held: PhantomData,
        })
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
        self.check(claim, domain, needed.access(), held).map(Writable)
    }
}

/// Memory inside an open region that has the required rights, valid for reads while the hold lasts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked<'guard> {
    start: *mut u8,
    length: usize,
    held: PhantomData<GateHeld<'guard>>,
}

impl Checked<'_> {
    /// Memory of no bytes.
    pub(crate) const EMPTY: Self =
        Self { start: NonNull::dangling().as_ptr(), length: 0, held: PhantomData };

    pub(crate) fn len(self) -> usize {
        self.length
    }

    /// Splits the memory after `count` bytes; the rest is empty if it has fewer.
    pub(crate) fn split_at(self, count: usize) -> (Self, Self) {
        let count = count.min(self.length);
        let rest = Self {
            start: self.start.wrapping_add(count),
            length: self.length - count,
            held: PhantomData,
        };
        (Self { length: count, ..self }, rest)
    }

    /// Returns the memory, which is valid while the hold lasts.
    pub(crate) fn memory(self) -> NonNull<[u8]> {
        let start = NonNull::new(self.start).unwrap_or(NonNull::dangling());
        NonNull::slice_from_raw_parts(start, self.length)
    }

    /// Appends the memory to `bytes`.
    pub(crate) fn append_to(self, bytes: &mut Vec<u8>) {
        if self.is_word() {
            return bytes.extend(self.word().load(Ordering::Acquire).to_ne_bytes());
        }
        let filled = bytes.len();
        bytes.resize(filled + self.length, 0);
        let post_limit = bytes[filled..].as_mut_ptr();
        // SAFETY: this memory is valid for reads (`RegionSlot::check`), `room` for writes of as
        // many bytes, and nobody else knows of `room`.
        unsafe { ptr::copy_nonoverlapping(self.start, post_limit, self.length) }
    }

    /// Copies as many bytes as fit. The two ranges may overlap.
    #[inline]
    pub(crate) fn copy_to(self, to: Writable<'_>) {
        let (body, last) = to.for_copy_of(self.length);
        let word = last.map(|_| self.split_at(body.0.length).1.read_word());
        // SAFETY: both ranges lie in open regions (`RegionSlot::check`) whose memory is valid
        // until the holds end, `to` for writes; `body` is not longer than either.
        unsafe { ptr::copy(self.start, body.0.start, body.0.length) };
        if let (Some(last), Some(word)) = (last, word) {
            last.0.word().store(word, Ordering::Release);
        }
    }

    /// Copies like `copy_to`, in one piece: for targets whose last word nobody polls.
    #[inline]
    pub(crate) fn copy_unordered_to(self, to: Writable<'_>) {
        if to.0.length <= 8 {
            return self.copy_to(to);
        }
        let length = self.length.min(to.0.length);
        // SAFETY: as in `copy_to`.
        unsafe { ptr::copy(self.start, to.0.start, length) };
    }

    /// Reads the first eight bytes, in one access if they are aligned. The memory has at least
    /// eight.
    #[inline]
    fn read_word(self) -> u64 {
        if self.start.addr().is_multiple_of(8) {
            // SAFETY: valid and aligned, as in `word`.
            let word = unsafe { Word::from_ptr(self.start.cast()) };
            return word.load(Ordering::Acquire);
        }
        // SAFETY: the memory is valid for reads of eight bytes; a write to it at the same time is
        // excluded by the contract of registration, as they are not one aligned word.
        unsafe { self.start.cast::<u64>().read_unaligned() }
    }

    /// Returns `true` if the memory is one aligned 64-bit word.
    #[inline]
    fn is_word(self) -> bool {
        self.length == 8 && self.start.addr().is_multiple_of(8)
    }

    /// Returns the word; only if `is_word` is `true`.
    #[inline]
    fn word(&self) -> &Word {
        debug_assert!(self.is_word());
        // SAFETY: `is_word` gives length and alignment, `RegionSlot::check` validity for as long
        // as this `Checked` can exist. Plain accesses at the same time are excluded by the
        // contract of registration.
        unsafe { Word::from_ptr(self.start.cast()) }
    }
}

/// Memory as [`Checked`], but valid for writes too: it has a right to write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writable<'guard>(Checked<'guard>);

impl Writable<'_> {
    /// Memory of no bytes.
    pub(crate) const EMPTY: Self = Self(Checked::EMPTY);

    pub(crate) fn len(self) -> usize {
        self.0.length
    }

    /// Returns the memory, as [`Checked::memory`] does.
    pub(crate) fn memory(self) -> NonNull<[u8]> {
        self.0.memory()
    }

    /// Splits the memory as [`Checked::split_at`] does.
    pub(crate) fn split_at(self, count: usize) -> (Self, Self) {
        let (first, rest) = self.0.split_at(count);
        (Self(first), Self(rest))
    }

    /// Copies as many bytes as fit.
    #[inline]
    pub(crate) fn fill(self, bytes: &[u8]) {
        let (body, last) = self.for_copy_of(bytes.len());
        // A single word needs no call of `copy`.
        if body.0.length > 0 {
            // SAFETY: `bytes` is valid for reads, this memory for writes (`RegionSlot::open`, as it
            // has a right to write), both for the length of `body`. A caller's slice cannot overlap
            // memory that the device may write, by the contract of registration; `copy` would allow
            // it all the same.
            unsafe { ptr::copy(bytes.as_ptr(), body.0.start, body.0.length) };
        }
        if let (Some(last), Some(word)) = (last, bytes[body.0.length..].first_chunk()) {
            last.0.word().store(u64::from_ne_bytes(*word), Ordering::Release);
        }
    }

    /// Changes the word atomically and returns its previous value; `None` if the memory is not one
    /// aligned word.
    pub(crate) fn update(self, update: WordUpdate) -> Option<u64> {
        self.0.is_word().then(|| update.apply(self.0.word()))
    }

    /// Returns the part that a copy of `length` bytes to this memory writes plainly, and the
    /// aligned word that it writes last, if the end is aligned.
    #[inline]
    fn for_copy_of(self, length: usize) -> (Self, Option<Self>) {
        let (all, _) = self.split_at(length);
        if all.0.length >= 8 && (all.0.start.addr() + all.0.length).is_multiple_of(8) {
            let (body, last) = all.split_at(all.0.length - 8);
            (body, Some(last))
        } else {
            (all, None)
        }
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::{Gate, PostLimit};

    #[test]
    fn a_claim_passes_only_inside_the_region() {
        let mut memory = [0u8; 16];
        let domain = NonZeroU32::MIN;
        let start = NonNull::from(&mut memory).cast::<u8>();
        let slot = RegionSlot::default();
        // SAFETY: `memory` outlives the slot's use and nothing is copied.
        unsafe { slot.open(5, start, 16, domain, Access::REMOTE_READ) };
        let gate = Gate::new(());
        let (mut guard, _) =
            gate.enter(0, PostLimit { freed: 0, limit: 1, all_or_none: false }).unwrap();
        let (_, held) = guard.parts();
        let base = start.as_ptr().addr() as u64;
        let check = |address, length| {
            slot.check(Claim { address, length, key: 5 }, domain, Access::REMOTE_READ, held).is_ok()
        };
        assert!(check(base, 16) && check(base + 16, 0) && check(base + 15, 1));
        assert!(!check(base, 17) && !check(base + 16, 1) && !check(base - 1, 1));
        assert!(!check(base + 17, 0) && !check(base + 8, u64::MAX) && !check(u64::MAX, 2));
        slot.close();
        assert!(!check(base, 16));
    }
}
