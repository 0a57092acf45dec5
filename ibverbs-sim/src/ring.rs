#![allow(unsafe_code, reason = "sequence numbers hand over slots, which are plain memory")]
//! A bounded multi-producer, multi-consumer queue without locks.
//!
//! The ring serves as completion queue (filled by the threads that carry out requests, emptied by
//! the owner) and as receive queue (filled by the owner, emptied by its peers).
//!
//! Every slot has a sequence number. A slot with number `p` is free for the push of position `p`;
//! after the push its number is `p + 1`, for which the pop of position `p` checks; after the pop it
//! is `p + capacity`, free for the next lap. A push or pop claims its positions by moving `tail` or
//! `head` with one compare-and-swap; between two stores of its number, only the claimer touches a
//! slot. Positions have 62 bits and never repeat; sequence numbers are their low 32 bits.
//!
//! The low bits of `tail` hold the events that the owner has armed. The push that claims a position
//! reads and clears them in the same step, so the order of an arming and an entry is always
//! defined. The case left is an entry that was claimed before the arming and is not yet published:
//! [`Ring::arm`] reports it, and the owner treats it as fired. Without that report the owner would
//! find nothing, sleep, and never be notified of the entry.
//!
//! Deliberately absent: growing, and dropping of entries left inside (`T: Copy`).

use std::mem::MaybeUninit;

use crossbeam_utils::CachePadded;
use talpf_primitives::{AtomicU32, AtomicU64, Ordering, UnsafeCell};

/// Arms a ring for the next entry of any kind.
pub(crate) const ARMED_ANY: u64 = 1;
/// Arms a ring for the next solicited entry.
pub(crate) const ARMED_SOLICITED: u64 = 2;

const ARMED: u64 = ARMED_ANY | ARMED_SOLICITED;
const POSITION_SHIFT: u32 = 2;

/// Error of a push that found no free slot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// A slot of a ring. Two share a cache line when `T` has 28 bytes, the size of both entry types.
#[repr(align(32))]
struct Slot<T> {
    value: UnsafeCell<MaybeUninit<T>>,
    sequence: AtomicU32,
}

/// A bounded queue; see the module text.
pub(crate) struct Ring<T> {
    tail: CachePadded<AtomicU64>,
    head: CachePadded<AtomicU64>,
    slots: Box<[Slot<T>]>,
}

// SAFETY: a slot's value is touched only by the thread that claimed its position, between two
// stores of its sequence number; sequence numbers are stored with Release and read with Acquire.
// `T: Send` lets values cross.
unsafe impl<T: Send> Sync for Ring<T> {}
// SAFETY: the ring owns its slots; moving it moves values that may be sent.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Creates a ring of at least `capacity` slots, rounded up to a power of two.
    pub(crate) fn new(capacity: u32) -> Self {
        let slots = (0..capacity.max(2).next_power_of_two())
            .map(|index| Slot {
                value: UnsafeCell::new(MaybeUninit::uninit()),
                sequence: AtomicU32::new(index),
            })
            .collect();
        Self {
            tail: CachePadded::new(AtomicU64::new(0)),
            head: CachePadded::new(AtomicU64::new(0)),
            slots,
        }
    }

    pub(crate) fn capacity(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Adds one entry. Returns `true` if it consumed an arming in `fires`.
    #[inline]
    pub(crate) fn push(&self, value: T, fires: u64) -> Result<bool, Full> {
        let mut tail = self.tail.load(Ordering::Relaxed);
        loop {
            let position = tail >> POSITION_SHIFT;
            match self.sequence_lag(position, position) {
                0 => {}
                // Not yet popped in the lap before.
                i32::MIN..=-1 => return Err(Full),
                _ => {
                    tail = self.tail.load(Ordering::Relaxed);
                    continue;
                }
            }
            let fired = tail & fires != 0;
            let armed = if fired { 0 } else { tail & ARMED };
            let next = ((position + 1) << POSITION_SHIFT) | armed;
            // AcqRel: the firing thread sees the writes before the arming.
            match self.tail.compare_exchange_weak(tail, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    self.write(position, value);
                    return Ok(fired);
                }
                Err(now) => tail = now,
            }
        }
    }

    /// Adds up to `count` entries made by `make(nth, slot index)`; returns the number of entries
    /// added. `make` runs after the slots are claimed and before they can be popped.
    #[inline]
    pub(crate) fn push_many(&self, count: usize, mut make: impl FnMut(usize, usize) -> T) -> usize {
        let mut tail = self.tail.load(Ordering::Relaxed);
        loop {
            let position = tail >> POSITION_SHIFT;
            let free = (0..count.min(self.slots.len()) as u64)
                .take_while(|ahead| self.sequence_lag(position + ahead, position + ahead) == 0)
                .count();
            if free == 0 && (count == 0 || self.sequence_lag(position, position) < 0) {
                return 0;
            }
            if free == 0 {
                tail = self.tail.load(Ordering::Relaxed);
                continue;
            }
            let next = ((position + free as u64) << POSITION_SHIFT) | (tail & ARMED);
            match self.tail.compare_exchange_weak(tail, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    for nth in 0..free {
                        let position = position + nth as u64;
                        self.write(position, make(nth, self.index(position)));
                    }
                    return free;
                }
                Err(now) => tail = now,
            }
        }
    }

    /// Returns `true` if the ring has no entry to remove at the moment. Reads only.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        let head = self.head.load(Ordering::Relaxed);
        self.sequence_lag(head, head + 1) < 0
    }

    /// Removes up to `limit` entries in order, handing each to `take(slot index, entry)`.
    /// A slot is free again only after its `take` has returned.
    #[inline]
    pub(crate) fn pop_many(&self, limit: usize, mut take: impl FnMut(usize, T)) -> usize {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            let ready = (0..limit.min(self.slots.len()) as u64)
                .take_while(|ahead| self.sequence_lag(head + ahead, head + ahead + 1) == 0)
                .count();
            if ready == 0 {
                if limit == 0 || self.sequence_lag(head, head + 1) < 0 {
                    return 0;
                }
                head = self.head.load(Ordering::Relaxed);
                continue;
            }
            match self.head.compare_exchange_weak(
                head,
                head + ready as u64,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    for position in head..head + ready as u64 {
                        take(self.index(position), self.read(position));
                        self.free(position);
                    }
                    return ready;
                }
                Err(now) => head = now,
            }
        }
    }

    /// Removes one entry, mapped by `take(slot index, entry)` before its slot is free again.
    #[inline]
    pub(crate) fn pop<R>(&self, take: impl FnOnce(usize, T) -> R) -> Option<R> {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            match self.sequence_lag(head, head + 1) {
                0 => {}
                i32::MIN..=-1 => return None,
                _ => {
                    head = self.head.load(Ordering::Relaxed);
                    continue;
                }
            }
            match self.head.compare_exchange_weak(
                head,
                head + 1,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    let taken = take(self.index(head), self.read(head));
                    self.free(head);
                    return Some(taken);
                }
                Err(now) => head = now,
            }
        }
    }

    /// Arms one firing for the next push whose `fires` has a bit of `interest`. Returns `true` if
    /// an entry claimed earlier is still unpublished: no push will fire for it, so the caller must.
    pub(crate) fn arm(&self, interest: u64) -> bool {
        let tail = self.tail.fetch_or(interest & ARMED, Ordering::AcqRel) >> POSITION_SHIFT;
        let head = self.head.load(Ordering::Acquire);
        (head..tail).any(|position| self.sequence_lag(position, position + 1) < 0)
    }

    /// Returns the difference between the sequence number of `position`'s slot and `sequence`.
    #[inline]
    fn sequence_lag(&self, position: u64, sequence: u64) -> i32 {
        let seen = self.slot(position).sequence.load(Ordering::Acquire);
        seen.wrapping_sub(sequence as u32) as i32
    }

    #[inline]
    fn index(&self, position: u64) -> usize {
        position as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn slot(&self, position: u64) -> &Slot<T> {
        &self.slots[self.index(position)]
    }

    /// Fills the slot of a position that this thread has claimed, and publishes it.
    #[inline]
    fn write(&self, position: u64, value: T) {
        let slot = self.slot(position);
        slot.value.with_mut(|cell| {
            // SAFETY: the caller moved `tail` past `position` while the slot's sequence number was
            // `position`, so no other thread reads or writes it until the store below.
            unsafe { cell.write(MaybeUninit::new(value)) }
        });
        slot.sequence.store(position.wrapping_add(1) as u32, Ordering::Release);
    }

    /// Copies out the entry of a position that this thread has claimed.
    #[inline]
    fn read(&self, position: u64) -> T {
        self.slot(position).value.with(|cell| {
            // SAFETY: the caller moved `head` past `position` after seeing the sequence number
            // `position + 1` with Acquire, so nobody writes the slot until that number changes.
            let value = unsafe { cell.read() };
            // SAFETY: that sequence number is stored only by `write`, after the value.
            unsafe { value.assume_init() }
        })
    }

    /// Frees the slot of a popped position for the next lap.
    #[inline]
    fn free(&self, position: u64) {
        let sequence = position.wrapping_add(self.slots.len() as u64) as u32;
        self.slot(position).sequence.store(sequence, Ordering::Release);
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
#[cfg(test)]
mod tests;
