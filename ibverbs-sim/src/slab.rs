//! Numbered slots that never move: a lookup by index takes two loads and no lock.
//!
//! Chunk `k` holds `FIRST << k` slots and is allocated with the first of them. Slots are never
//! returned to the allocator; a released index is used again, oldest first. Released indices are
//! kept in several lists, by user, so that users on different cores share no cache lines; the limit
//! applies to all users together.

use std::{collections::VecDeque, sync::OnceLock};

use crossbeam_utils::CachePadded;
use talpf_primitives::{AtomicU32, Mutex, Ordering};

const FIRST_SHIFT: u32 = 6;
/// Bits of an index; the rest of a 32-bit key or number is the generation of its slot.
pub(crate) const INDEX_BITS: u32 = 20;
const CHUNKS: usize = (INDEX_BITS - FIRST_SHIFT) as usize;

/// Number of lists of released indices, a power of two.
const FREE_LISTS: usize = 16;

/// The largest number of slots.
pub(crate) const MAX_SLOTS: u32 = (1 << INDEX_BITS) - (1 << FIRST_SHIFT);

/// A table of slots that are given out by index.
pub(crate) struct Slab<T> {
    chunks: [OnceLock<Box<[CachePadded<T>]>>; CHUNKS],
    free_lists: [CachePadded<Mutex<VecDeque<u32>>>; FREE_LISTS],
    used: AtomicU32,
    limit: u32,
}

impl<T: Default> Slab<T> {
    /// Creates a slab that gives out at most `limit` slots at a time.
    pub(crate) fn new(limit: u32) -> Self {
        Self {
            chunks: [const { OnceLock::new() }; CHUNKS],
            free_lists: std::array::from_fn(|_| CachePadded::default()),
            used: AtomicU32::new(0),
            limit: limit.min(MAX_SLOTS),
        }
    }

    /// Returns the slot of an index that was given out at some time.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (chunk, offset) = place(index);
        self.chunks.get(chunk)?.get()?.get(offset).map(|slot| &**slot)
    }

    /// Gives out an index to `user`, or returns `None` at the limit. It may also return `None` if a
    /// third user takes an index that another one releases at the same time.
    pub(crate) fn allocate(&self, user: u32) -> Option<(u32, &T)> {
        let index = self.take(user).or_else(|| self.never_used()).or_else(|| {
            // Indices that other users have released.
            (1..FREE_LISTS as u32).find_map(|other| self.take(user.wrapping_add(other)))
        })?;
        let (chunk, offset) = place(index);
        let slots = self.chunks.get(chunk)?.get_or_init(|| {
            let count = 1usize << (FIRST_SHIFT as usize + chunk);
            (0..count).map(|_| CachePadded::default()).collect()
        });
        Some((index, slots.get(offset)?))
    }

    /// Takes an index back from `user`. The caller has made sure that no thread uses its slot.
    pub(crate) fn release(&self, index: u32, user: u32) {
        self.free_list(user).lock().push_back(index);
    }

    fn take(&self, user: u32) -> Option<u32> {
        self.free_list(user).lock().pop_front()
    }

    /// Returns an index that was never given out.
    #[cold]
    fn never_used(&self) -> Option<u32> {
        let next = |used| (used < self.limit).then_some(used + 1);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()
    }

    fn free_list(&self, user: u32) -> &Mutex<VecDeque<u32>> {
        &self.free_lists[user as usize % FREE_LISTS]
    }
}

/// Returns chunk and offset of an index.
#[inline]
fn place(index: u32) -> (usize, usize) {
    let biased = index as usize + (1 << FIRST_SHIFT);
    let level = biased.ilog2();
    ((level - FIRST_SHIFT) as usize, biased - (1 << level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_has_its_own_place() {
        let mut expected = (0, 0);
        for index in 0..10_000 {
            assert_eq!(place(index), expected);
            expected.1 += 1;
            if expected.1 == 1 << (FIRST_SHIFT as usize + expected.0) {
                expected = (expected.0 + 1, 0);
            }
        }
        assert!(place(MAX_SLOTS - 1).0 < CHUNKS);
        assert_eq!(place(MAX_SLOTS), (CHUNKS, 0));
    }

    #[test]
    fn released_indices_come_back_oldest_first_and_the_limit_holds() {
        let slab = Slab::<u8>::new(2);
        assert_eq!(slab.allocate(0).unwrap().0, 0);
        assert_eq!(slab.allocate(0).unwrap().0, 1);
        assert!(slab.allocate(0).is_none());
        slab.release(1, 0);
        slab.release(0, 0);
        assert_eq!(slab.allocate(0).unwrap().0, 1);
        assert_eq!(slab.allocate(0).unwrap().0, 0);
    }

    #[test]
    fn at_the_limit_what_others_have_released_is_given_out() {
        let slab = Slab::<u8>::new(2);
        assert_eq!(slab.allocate(3).unwrap().0, 0);
        slab.release(0, 3);
        assert_eq!(slab.allocate(4).unwrap().0, 1);
        assert_eq!(slab.allocate(4).unwrap().0, 0);
        assert!(slab.allocate(3).is_none() && slab.allocate(4).is_none());
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
