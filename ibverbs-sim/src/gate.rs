#![allow(unsafe_code, reason = "the holder of a gate has the only access to its value")]
//! Gates: the lock of a send queue. Its holder carries out requests, and no poster waits for it.
//!
//! A single word holds all state that must change together:
//!
//! ```text
//! 63           32 31         8 7        0
//! [ posted count ][ hold count ][ flags ]
//! ```
//!
//! - `HELD`: a thread carries out requests and has exclusive access to the value.
//! - `QUEUED`: requests wait in the retry queue of the queue pair.
//! - `STALLED`: the first request of the retry queue waits for a receive, a response or a deadline.
//! - `RESUME`: the event that a stalled request waits for has occurred while the gate was held; the
//!   holder must try again. Without `HELD` the flag has no meaning.
//!
//! A poster that finds no flag set takes the gate and carries its requests out. Otherwise it adds
//! them to the retry queue and sets `QUEUED`: if the gate is held, the holder sees the flag when it
//! releases the gate, and if not, the poster drains the queue itself. Both steps change the same
//! word, so one of the two always sees the other: no request is left behind.
//!
//! The posted count changes in the same step, so the limit of the send queue is exact with any
//! number of posters. The hold count distinguishes one hold from the next:
//! [`Gate::wait_for_holder`] waits for the end of one hold, not for a free gate, which it might
//! never see.
//!
//! Every change of the word is a read-modify-write, so all of them form one order in which each
//! synchronises with those before it. A thread that closes something (a key, a state) and then
//! calls `wait_for_holder` has its own place in that order: it sees and waits for a holder before
//! it, and a holder after it sees the change.

use std::ops::{Deref, DerefMut};

use talpf_primitives::{AtomicU64, Ordering, UnsafeCell, note_entry, note_exit, yield_now};

const HELD: u64 = 1;
const QUEUED: u64 = 2;
const STALLED: u64 = 4;
const RESUME: u64 = 8;
const FLAGS: u64 = 0xff;
const ONE_HOLD: u64 = 1 << 8;
const HOLDS: u64 = 0xff_ffff << 8;
const POSTED_SHIFT: u32 = 32;

/// Limit of a post: the number of requests freed so far, and the most that may be outstanding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PostLimit {
    pub(crate) freed: u32,
    pub(crate) limit: u32,
    /// Grants all requests or none.
    pub(crate) all_or_none: bool,
}

impl PostLimit {
    #[inline]
    pub(crate) fn grant(self, posted: u32, wanted: u32) -> u32 {
        let outstanding = posted.wrapping_sub(self.freed);
        let left = self.limit.saturating_sub(outstanding);
        if self.all_or_none && left < wanted { 0 } else { wanted.min(left) }
    }
}

/// A lock for a value of type `T`; see the module text.
pub(crate) struct Gate<T> {
    word: AtomicU64,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through `GateGuard`, and `HELD` admits one `GateGuard` at a
// time.
unsafe impl<T: Send> Sync for Gate<T> {}

impl<T> Gate<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { word: AtomicU64::new(0), value: UnsafeCell::new(value) }
    }

    /// Returns the number of requests ever posted, wrapping.
    #[inline]
    pub(crate) fn posted(&self) -> u32 {
        (self.word.load(Ordering::SeqCst) >> POSTED_SHIFT) as u32
    }

    /// Returns `true` if everything that was posted has been carried out.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.word.load(Ordering::SeqCst) & FLAGS == 0
    }

    /// Takes an idle gate and counts as many of `wanted` requests as `post_limit` grants. Returns
    /// `None` if the gate is not idle.
    #[inline]
    pub(crate) fn enter(
        &self,
        wanted: u32,
        post_limit: PostLimit,
    ) -> Option<(GateGuard<'_, T>, u32)> {
        let word = self.word.load(Ordering::Relaxed);
        let granted = post_limit.grant((word >> POSTED_SHIFT) as u32, wanted);
        let next = count(held(word), granted);
        (word & FLAGS == 0 && self.swap(word, next).is_ok())
            .then(|| (GateGuard::new(self), granted))
    }

    /// Counts requests that the caller, which has the retry queue locked, adds to it.
    pub(crate) fn enqueue(&self, wanted: u32, post_limit: PostLimit) -> u32 {
        let mut word = self.word.load(Ordering::SeqCst);
        loop {
            let granted = post_limit.grant((word >> POSTED_SHIFT) as u32, wanted);
            if granted == 0 {
                return 0;
            }
            match self.swap(word, count(word, granted) | QUEUED) {
                Ok(_) => return granted,
                Err(now) => word = now,
            }
        }
    }

    /// Takes the gate if the retry queue has requests, is not stalled, and nobody holds the gate.
    pub(crate) fn enter_to_drain(&self) -> Option<GateGuard<'_, T>> {
        let mut word = self.word.load(Ordering::SeqCst);
        while word & (HELD | QUEUED | STALLED) == QUEUED {
            match self.swap(word, held(word)) {
                Ok(_) => return Some(GateGuard::new(self)),
                Err(now) => word = now,
            }
        }
        None
    }

    /// Takes the gate in any state, waiting for a holder to release it. For the control path,
    /// and for what arrives from other processes.
    pub(crate) fn enter_blocking(&self) -> GateGuard<'_, T> {
        loop {
            let word = self.word.load(Ordering::SeqCst);
            if word & HELD == 0 && self.swap(word, held(word)).is_ok() {
                return GateGuard::new(self);
            }
            yield_now();
        }
    }

    /// Ends a stall, because the event that its request waits for has occurred. Returns `true` if
    /// the caller must drain the retry queue. A holder that has taken a stalled gate drains it when
    /// it releases the gate.
    pub(crate) fn resume(&self) -> bool {
        let mut word = self.word.load(Ordering::SeqCst);
        loop {
            let (next, drain) = match word & (HELD | STALLED) {
                STALLED => (word & !STALLED, true),
                HELD => (word | RESUME, false),
                0 => return false,
                // Held by `enter_blocking`.
                _ => (word & !STALLED, false),
            };
            match self.swap(word, next) {
                Ok(_) => return drain,
                Err(now) => word = now,
            }
        }
    }

    /// Waits until a hold that is under way at the call has ended.
    pub(crate) fn wait_for_holder(&self) {
        // Changes no bit, but takes a place in the order of changes.
        let seen = self.word.fetch_or(0, Ordering::SeqCst);
        if seen & HELD == 0 {
            return;
        }
        loop {
            let word = self.word.load(Ordering::SeqCst);
            if word & HELD == 0 || (word ^ seen) & HOLDS != 0 {
                return;
            }
            yield_now();
        }
    }

    /// Ends a hold and returns the previous word. One `xadd` unless `RESUME` is set: `HELD` is set,
    /// so subtracting it borrows from no other bit.
    #[inline]
    fn leave(&self) -> u64 {
        note_exit();
        let word = self.word.fetch_sub(HELD, Ordering::SeqCst);
        if word & RESUME != 0 {
            self.clear_resume();
        }
        word
    }

    /// Clears the `RESUME` of a hold that has ended. The next hold clears it when it begins, and a
    /// `RESUME` that is set after that stays.
    #[cold]
    fn clear_resume(&self) {
        let clear = |word| (word & (HELD | RESUME) == RESUME).then_some(word & !RESUME);
        let _ = self.word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, clear);
    }

    #[inline]
    fn swap(&self, from: u64, to: u64) -> Result<u64, u64> {
        self.word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
    }
}

/// Exclusive access to the value of a gate. Its drop leaves `QUEUED` and `STALLED` unchanged.
pub(crate) struct GateGuard<'gate, T> {
    gate: &'gate Gate<T>,
}

/// Proof, while it lives, that some gate of the device is held: memory that was checked under it
/// stays usable until the hold ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GateHeld<'guard>(std::marker::PhantomData<&'guard ()>);

impl<'gate, T> GateGuard<'gate, T> {
    /// Makes the guard of the thread that has just set `HELD`.
    #[inline]
    fn new(gate: &'gate Gate<T>) -> Self {
        note_entry();
        Self { gate }
    }

    /// Returns the value, and a proof of the hold for checks of memory.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&mut T, GateHeld<'_>) {
        (self, GateHeld(std::marker::PhantomData))
    }

    /// Sets `QUEUED`. The caller has the retry queue locked and has added requests that are counted
    /// already.
    pub(crate) fn set_queued(&self) {
        self.gate.word.fetch_or(QUEUED, Ordering::SeqCst);
    }

    /// Clears `QUEUED`. The caller has the retry queue locked and has found it empty.
    pub(crate) fn clear_queued(&self) {
        self.gate.word.fetch_and(!QUEUED, Ordering::SeqCst);
    }

    /// Ends this hold and starts another, so that threads which wait for the holder do not wait for
    /// a long drain.
    pub(crate) fn renew(&mut self) {
        let mut word = self.gate.word.load(Ordering::SeqCst);
        while let Err(now) = self.gate.swap(word, held(word)) {
            word = now;
        }
    }

    /// Releases the gate. Returns `true` if the retry queue has requests and is not stalled: the
    /// caller must drain it.
    #[inline]
    pub(crate) fn release(self) -> bool {
        let gate = self.gate;
        std::mem::forget(self);
        gate.leave() & (QUEUED | STALLED) == QUEUED
    }

    /// Releases the gate and marks the first request of the retry queue as stalled. Returns the
    /// guard if the queue was resumed in the meantime.
    pub(crate) fn stall(self) -> Result<(), Self> {
        let mut word = self.gate.word.load(Ordering::SeqCst);
        loop {
            let resumed = word & RESUME != 0;
            let next = if resumed { word & !RESUME } else { (word & !HELD) | STALLED };
            match self.gate.swap(word, next) {
                Ok(_) if resumed => return Err(self),
                Ok(_) => {
                    note_exit();
                    std::mem::forget(self);
                    return Ok(());
                }
                Err(now) => word = now,
            }
        }
    }

    /// Ends a stall that this hold may have ended the reason for.
    pub(crate) fn clear_stalled(&self) {
        self.gate.word.fetch_and(!STALLED, Ordering::SeqCst);
    }

    /// Clears all flags of the retry queue. The caller has emptied the queue and has it locked.
    pub(crate) fn clear_queued_and_stalled(&self) {
        self.gate.word.fetch_and(!(QUEUED | STALLED | RESUME), Ordering::SeqCst);
    }
}

impl<T> Deref for GateGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this `GateGuard` exists because it alone has set `HELD`, and it is shared here.
        self.gate.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for GateGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `&mut self` makes this the only use of the only `GateGuard`.
        self.gate.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for GateGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.gate.leave();
    }
}

/// Returns `word` with the gate taken for a new hold, which nothing has resumed.
#[inline]
fn held(word: u64) -> u64 {
    (word & !(HOLDS | RESUME)) | (word.wrapping_add(ONE_HOLD) & HOLDS) | HELD
}

/// Returns `word` with `posted` more requests.
#[inline]
fn count(word: u64, posted: u32) -> u64 {
    word.wrapping_add(u64::from(posted) << POSTED_SHIFT)
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
#[cfg(test)]
mod tests;
