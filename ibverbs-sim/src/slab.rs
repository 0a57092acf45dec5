//! Numbered slots that never move: look-up by index takes two loads and no lock.
//!
//! Chunk `k` holds `FIRST << k` slots and is made when its first slot is. Slots are never given
//! back to the allocator; a released index is used again, oldest first.

use std::{collections::VecDeque, sync::OnceLock};

use parking_lot::Mutex;

const FIRST_SHIFT: u32 = 6;
/// Indices have this many bits; the rest of a 32-bit key or number tells its generations apart.
pub(crate) const INDEX_BITS: u32 = 20;
const CHUNKS: usize = (INDEX_BITS - FIRST_SHIFT) as usize;

/// The largest number of slots.
pub(crate) const MAX_SLOTS: u32 = (1 << INDEX_BITS) - (1 << FIRST_SHIFT);

/// See the module text.
pub(crate) struct Slab<T> {
    chunks: [OnceLock<Box<[T]>>; CHUNKS],
    free: Mutex<Free>,
}

struct Free {
    released: VecDeque<u32>,
    used: u32,
    limit: u32,
}

impl<T: Default> Slab<T> {
    /// A slab that gives out at most `limit` slots at a time.
    pub(crate) fn new(limit: u32) -> Self {
        let limit = limit.min(MAX_SLOTS);
        Self {
            chunks: [const { OnceLock::new() }; CHUNKS],
            free: Mutex::new(Free { released: VecDeque::new(), used: 0, limit }),
        }
    }

    /// The slot of an index that was given out at some time.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (chunk, offset) = place(index);
        self.chunks.get(chunk)?.get()?.get(offset)
    }

    /// Gives out an index, or `None` at the limit.
    pub(crate) fn allocate(&self) -> Option<(u32, &T)> {
        let mut free = self.free.lock();
        let fresh = free.used < free.limit;
        let index = match free.released.pop_front() {
            Some(index) => index,
            None if fresh => {
                free.used += 1;
                free.used - 1
            }
            None => return None,
        };
        let (chunk, offset) = place(index);
        let slots = self.chunks.get(chunk)?.get_or_init(|| {
            (0..1usize << (FIRST_SHIFT as usize + chunk)).map(|_| T::default()).collect()
        });
        Some((index, slots.get(offset)?))
    }

    /// Takes an index back. The caller has made sure that nobody uses it.
    pub(crate) fn release(&self, index: u32) {
        self.free.lock().released.push_back(index);
    }
}

/// Chunk and offset of an index.
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
        assert_eq!(slab.allocate().unwrap().0, 0);
        assert_eq!(slab.allocate().unwrap().0, 1);
        assert!(slab.allocate().is_none());
        slab.release(1);
        slab.release(0);
        assert_eq!(slab.allocate().unwrap().0, 1);
        assert_eq!(slab.allocate().unwrap().0, 0);
    }
}
