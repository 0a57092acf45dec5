//! The exchange of buffers between the writer of a sampled value and one reader.
//!
//! Of three buffers the writer has one, its *back*, and the reader one, its *front*. The third is
//! in the exchange. Who has filled or read a buffer swaps it for the one in the exchange, by one
//! atomic swap of its number; a mark says that it was filled since the reader took one. So neither
//! waits for the other, and a buffer has one owner at a time.
//!
//! **The race that the swap prevents**: the writer fills the buffer that is being read. Both swaps
//! are of one word, so they have an order, and each buffer is in one of the three places.

use talpf_primitives::{AtomicU32, Ordering};

/// Number of buffers.
pub(super) const BUFFERS: usize = 3;
/// Mark of a buffer that was filled since the reader took one.
const FRESH: u32 = 4;
const NUMBER: u32 = 3;

/// Number of the buffer that the writer has at first.
pub(super) const FIRST_BACK: u32 = 0;

/// The buffer of the writer.
#[derive(Debug)]
pub(super) struct Back(u32);

/// The buffer of the reader.
#[derive(Debug)]
pub(super) struct Front(u32);

/// The number of the buffer that neither has.
#[derive(Debug)]
pub(super) struct Exchange(AtomicU32);

impl Exchange {
    /// Makes an exchange, with the buffers of its writer and of its reader.
    pub(super) fn new() -> (Self, Back, Front) {
        (Exchange(AtomicU32::new(1)), Back(FIRST_BACK), Front(2))
    }

    /// Leaves the filled buffer of the writer for the reader, and gives the writer another one.
    #[inline]
    pub(super) fn publish(&self, back: &mut Back) {
        back.0 = self.0.swap(back.0 | FRESH, Ordering::AcqRel) & NUMBER;
    }

    /// Returns `true` if a buffer was filled that the reader has not taken.
    #[inline]
    pub(super) fn is_fresh(&self) -> bool {
        self.0.load(Ordering::Acquire) & FRESH != 0
    }

    /// Takes the buffer that was filled last in place of that of the reader. Returns `false`, and
    /// takes none, if none was filled since.
    #[inline]
    pub(super) fn take(&self, front: &mut Front) -> bool {
        // Only this reader removes the mark.
        let is_fresh = self.is_fresh();
        if is_fresh {
            front.0 = self.0.swap(front.0, Ordering::AcqRel) & NUMBER;
        }
        is_fresh
    }
}

impl Back {
    #[inline]
    pub(super) fn index(&self) -> usize {
        self.0 as usize
    }
}

impl Front {
    #[inline]
    pub(super) fn index(&self) -> usize {
        self.0 as usize
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_buffer_has_one_owner() {
        let (exchange, mut back, mut front) = Exchange::new();
        let mut filled = [0; BUFFERS];
        assert!(!exchange.take(&mut front));
        for value in 1..1000 {
            filled[back.index()] = value;
            exchange.publish(&mut back);
            assert_ne!(back.index(), front.index());
            if value % 3 == 0 {
                assert!(exchange.take(&mut front));
                assert_eq!(filled[front.index()], value);
                assert!(!exchange.take(&mut front));
            }
        }
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    #[test]
    fn loom_a_sample_is_whole_and_no_older_than_the_one_before() {
        loom::model(|| {
            let (exchange, mut back, mut front) = Exchange::new();
            // A value is two words, stored and loaded without an order: torn ones would differ.
            let buffers: [[AtomicU32; 2]; BUFFERS] =
                std::array::from_fn(|_| [AtomicU32::new(0), AtomicU32::new(0)]);
            let shared = Arc::new((exchange, buffers));
            let writer = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    for value in 1..=3 {
                        let halves = &shared.1[back.index()];
                        halves.iter().for_each(|half| half.store(value, Ordering::Relaxed));
                        shared.0.publish(&mut back);
                    }
                })
            };
            let mut last = 0;
            let mut sample = || {
                shared.0.take(&mut front);
                let halves = shared.1[front.index()].each_ref();
                let [first, second] = halves.map(|half| half.load(Ordering::Relaxed));
                assert_eq!(first, second);
                assert!(first >= last);
                last = first;
                last
            };
            sample();
            sample();
            writer.join().unwrap();
            assert_eq!(sample(), 3, "the latest value");
        });
    }
}
