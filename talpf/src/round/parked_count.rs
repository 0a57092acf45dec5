//! The number of operations of a round that are parked at their targets.
//!
//! The thread that posts the last one makes progress for the round's sync only if that waits for it.

use talpf_primitives::{AtomicU32, Ordering};

/// Set in the word while the sync waits; the other bits count.
const AWAITED: u32 = 1 << 31;

/// Counts the parked operations of a round.
pub(crate) struct ParkedCount(AtomicU32);

impl ParkedCount {
    pub(super) fn new() -> Self {
        ParkedCount(AtomicU32::new(0))
    }

    /// Notes that an operation is about to be parked, which still has a handle of the round, or is a part of one that
    /// is parked.
    pub(crate) fn enter(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a parked operation was posted or refused. Returns `true` for the last one if the
    /// sync waits for it: it advances when its rank makes progress.
    pub(crate) fn leave(&self) -> bool {
        self.0.fetch_sub(1, Ordering::AcqRel) == AWAITED | 1
    }

    /// Returns `true` if operations are parked, for a sync that waits for them then. Once the round is posted, only
    /// parts of those are added.
    pub(crate) fn must_wait(&self) -> bool {
        self.0.fetch_or(AWAITED, Ordering::AcqRel) & !AWAITED > 0
    }

    /// Returns the number of operations, for reports.
    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed) & !AWAITED
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    #[test]
    fn a_sync_sees_that_none_is_parked_or_the_thread_that_posts_the_last_one_makes_progress() {
        loom::model(|| {
            let parked = Arc::new(ParkedCount::new());
            parked.enter();
            parked.enter();
            let posts = {
                let parked = Arc::clone(&parked);
                move || parked.leave()
            };
            let others = [thread::spawn(posts.clone()), thread::spawn(posts)];
            let waits = parked.must_wait();
            let called = others.map(|other| other.join().unwrap());
            let times = called.into_iter().filter(|&calls| calls).count();
            assert_eq!(times, usize::from(waits));
            assert_eq!(parked.count(), 0);
            assert!(!parked.must_wait());
        });
    }
}
