//! A flag of a rank that is set before it waits for messages of other processes, until a thread that takes some in takes
//! the flag back. A rank has two of them.
//!
//! Syncs that wait for responses of other processes have one: no completion announces that a request without one was
//! carried out. So the thread that takes in what other processes have sent rings the doorbells of ranks whose flags are
//! set:
//!
//! | the sync | the thread that takes in responses |
//! |---|---|
//! | sets the flag | ends the requests |
//! | fences | fences |
//! | checks for requests under way: waits if there are some | takes the flag back; if it was set, rings the doorbell |
//!
//! The two fences have an order. If that of the sync is first, the thread sees the flag; if that of the thread is
//! first, the sync sees that the requests have ended.
//!
//! Operations that wait for credit have the other one (`operation/retry_queue.rs`).

use talpf_primitives::{AtomicBool, Ordering, fence};

/// The flag of one rank.
#[derive(Default)]
pub(crate) struct ResponseFlag(AtomicBool);

impl ResponseFlag {
    /// Sets the flag. The caller then checks for requests under way.
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Sets the flag, and returns `true` if it was set. The caller then asks for credit.
    pub(crate) fn renew(&self) -> bool {
        let was_set = self.0.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        was_set
    }

    /// Takes the flag back, for a thread that has taken in responses and fenced since. Returns `true` if it
    /// was set.
    #[inline]
    pub(crate) fn take(&self) -> bool {
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::AcqRel)
    }

    /// Returns `true` if nobody has taken the flag back.
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU32;
    use loom::thread;

    use super::*;

    #[test]
    fn loom_a_sync_sees_the_responses_or_the_thread_that_takes_them_in_sees_the_sync() {
        loom::model(|| {
            let shared = Arc::new((ResponseFlag(AtomicBool::new(false)), AtomicU32::new(1)));
            let other = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    shared.1.store(0, Ordering::Release);
                    fence(Ordering::SeqCst);
                    shared.0.take()
                })
            };
            let (flag, under_way) = &*shared;
            flag.set();
            let waits = under_way.load(Ordering::Acquire) > 0;
            assert!(other.join().unwrap() || !waits, "a sync that nobody wakes");
        });
    }
}
