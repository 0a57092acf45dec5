//! Counts of the freed send requests of all queue pairs.
//!
//! A poll of a completion queue must free send-queue slots of any of its queue pairs, and knows
//! only their numbers. The low bits of a number are the index of a word `number : freed count`; the
//! number in the word distinguishes a destroyed queue pair's completions from its successor's. The
//! count is the number of requests ever freed, wrapping, and only grows: the order of updates does
//! not matter.

use talpf_primitives::{AtomicU64, Ordering};

use crate::{
    Error, QueuePairNumber, Result,
    slab::{INDEX_BITS, Slab},
};

pub(crate) struct SendSlots {
    words: Slab<AtomicU64>,
    limit: u32,
}

impl SendSlots {
    pub(crate) fn new(limit: u32) -> Self {
        Self { words: Slab::new(limit), limit }
    }

    /// Allocates a queue pair number, with no request freed.
    pub(crate) fn allocate(&self) -> Result<QueuePairNumber> {
        let limit = u64::from(self.limit);
        let full = Error::LimitExceeded { what: "max_qp", requested: limit + 1, limit };
        let (index, word) = self.words.allocate(0).ok_or(full)?;
        let generation = (word.load(Ordering::Relaxed) >> (32 + INDEX_BITS)) as u32;
        let number = generation.wrapping_add(1) << INDEX_BITS | index;
        // A read-modify-write: a late completion comes before or after it.
        word.swap(u64::from(number) << 32, Ordering::SeqCst);
        Ok(QueuePairNumber(number))
    }

    /// Releases a number that no queue pair has any more.
    pub(crate) fn release(&self, number: QueuePairNumber) {
        self.words.release(number.index(), 0);
    }

    /// Returns the number of requests of `number` ever freed.
    #[inline]
    pub(crate) fn freed(&self, number: QueuePairNumber) -> u32 {
        self.words.get(number.index()).map_or(0, |word| word.load(Ordering::Acquire) as u32)
    }

    /// Frees the requests of `number` up to the `executed`th.
    #[inline]
    pub(crate) fn free(&self, number: QueuePairNumber, executed: u32) {
        let Some(word) = self.words.get(number.index()) else {
            return;
        };
        let mut seen = word.load(Ordering::Relaxed);
        while (seen >> 32) as u32 == number.0 && executed.wrapping_sub(seen as u32) as i32 > 0 {
            let next = u64::from(number.0) << 32 | u64::from(executed);
            match word.compare_exchange_weak(seen, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
