//! The number of waits of a rank that have not ended.
//!
//! Peers read it with every operation outside rounds that they post: if there is a wait they make
//! progress for the rank. It is a hint, as the flag of a rank that waits for a sync: a wait counts
//! before its last poll, so that this poll or the peer sees what was posted.

use talpf_primitives::{AtomicUsize, Ordering};

/// The number of waits of one rank.
#[derive(Default)]
pub(super) struct WaitCount(AtomicUsize);

impl WaitCount {
    #[inline]
    pub(super) fn is_any(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }

    /// Changes the number. Called under the lock of the table.
    #[inline]
    pub(super) fn change(&self, by: isize) {
        let waits = self.0.load(Ordering::Relaxed);
        self.0.store(waits.wrapping_add_signed(by), Ordering::SeqCst);
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::thread;
    use talpf_primitives::AtomicBool;

    use super::*;

    #[test]
    fn a_peer_sees_a_wait_or_the_wait_what_the_peer_has_posted() {
        loom::model(|| {
            let shared = Arc::new((WaitCount::default(), AtomicBool::new(false)));
            let peer = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    shared.1.store(true, Ordering::Release);
                    // The gate of its queue pair, which the peer leaves in between.
                    loom::sync::atomic::fence(Ordering::SeqCst);
                    shared.0.is_any()
                })
            };
            shared.0.change(1);
            // The store is sequentially consistent, and so a fence, which loom does not know.
            loom::sync::atomic::fence(Ordering::SeqCst);
            let seen = shared.1.load(Ordering::Acquire);
            assert!(peer.join().unwrap() || seen);
        });
    }
}
