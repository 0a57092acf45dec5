//! Sleep of a polling task: the words that keep it from missing a message or a batch.
//!
//! | the task writes | then reads | the other thread writes | then reads |
//! |---|---|---|---|
//! | its `Sleeper`: asleep | [`BatchingLinks`] | [`BatchingLinks`]: one more link | the `Sleeper` |
//! | the word of [`must_ring_doorbell`], at the peer | its rings | a cell | that word |
//!
//! A sequentially consistent fence separates the write of each thread from its read, so in each row
//! at least one of the two sees the write of the other. The README beside this file says what they
//! do then.

use talpf_primitives::{AtomicU64, AtomicUsize, Ordering, fence};

/// Number of links of a rank that have a batch.
#[derive(Default)]
pub(super) struct BatchingLinks(AtomicUsize);

impl BatchingLinks {
    /// Counts one more link. The caller asks next if the task sleeps.
    pub(super) fn begin(&self) {
        self.0.fetch_add(1, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    pub(super) fn end(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }

    #[inline]
    pub(super) fn any(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }
}

/// Returns `true`, to one caller, if the peer whose word this is sleeps: that caller rings the
/// doorbell. To be called after the write that the peer has to see.
#[inline]
pub(super) fn must_ring_doorbell(asleep: &AtomicU64) -> bool {
    fence(Ordering::SeqCst);
    asleep.load(Ordering::Relaxed) != 0 && asleep.swap(0, Ordering::SeqCst) != 0
}

/// Separates the report to the peers that this rank sleeps from its last poll of the rings.
pub(super) fn fence_before_last_poll() {
    fence(Ordering::SeqCst);
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
