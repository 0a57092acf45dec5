//! A flag of a rank that is set while one of its tasks is suspended until a sync ends.
//!
//! Peers read it with every post: if it is set they make progress for the rank (`notify.rs`). It is
//! a hint: a peer that misses it leaves what it has posted to the polling task, one that finds it
//! set too long polls without success. A task sets it before its last poll. The thread that ends a
//! sync of the rank clears it before it wakes the task, and so does a task that continues without
//! having been woken. So the flag of a task that continues is clear.

use std::task::Waker;

use talpf_primitives::{AtomicBool, Ordering};

use super::outcome::Outcome;
use crate::error::Error;

/// The flag of one rank.
pub(crate) struct WaitFlag(AtomicBool);

impl WaitFlag {
    pub(crate) fn new() -> Self {
        WaitFlag(AtomicBool::new(false))
    }

    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Clears the flag: a sync of the rank ends, or the task that waits for one continues.
    #[inline]
    pub(super) fn clear(&self) {
        if self.is_set() {
            self.0.store(false, Ordering::SeqCst);
        }
    }

    /// Returns the result of a sync that has ended. If it has not after a last `poll`, `waker` is
    /// called when it ends.
    #[inline]
    pub(super) fn wait(
        &self,
        outcome: &Outcome,
        waker: &Waker,
        poll: impl FnOnce(),
    ) -> Option<Result<(), Error>> {
        let mut result = outcome.result();
        if result.is_none() {
            // From here on peers notify; the last poll sees what they posted before.
            self.0.store(true, Ordering::SeqCst);
            poll();
            result = outcome.poll(waker);
        }
        if result.is_some() {
            self.clear();
        }
        result
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use std::task::Wake;

    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// A task that runs again when it was woken.
    struct Task(AtomicBool);

    impl Wake for Task {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }

    #[test]
    fn a_task_that_waits_goes_on_once_and_is_not_taken_to_wait_any_more() {
        loom::model(|| {
            let shared = Arc::new((WaitFlag::new(), Outcome::default()));
            let ender = {
                let shared = Arc::clone(&shared);
                // As `ActiveSync::end`.
                thread::spawn(move || {
                    shared.0.clear();
                    shared.1.set(Ok(())).unwrap();
                })
            };
            let (waits, outcome) = &*shared;
            let task = std::sync::Arc::new(Task(AtomicBool::new(false)));
            let waker = Waker::from(std::sync::Arc::clone(&task));
            if waits.wait(outcome, &waker, || ()).is_none() {
                while !task.0.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                assert!(waits.wait(outcome, &waker, || ()).is_some(), "woken for nothing");
            }
            ender.join().unwrap();
            assert!(!waits.is_set());
        });
    }

    #[test]
    fn a_peer_sees_a_task_that_waits_or_the_task_what_the_peer_has_posted() {
        loom::model(|| {
            let shared = Arc::new((WaitFlag::new(), Outcome::default(), AtomicBool::new(false)));
            let peer = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    shared.2.store(true, Ordering::Release);
                    // The gate of its queue pair, which the peer leaves in between.
                    loom::sync::atomic::fence(Ordering::SeqCst);
                    shared.0.is_set()
                })
            };
            let mut seen = false;
            let waker = Waker::noop();
            let result = shared.0.wait(&shared.1, waker, || {
                // The store is sequentially consistent, and so a fence, which loom does not know.
                loom::sync::atomic::fence(Ordering::SeqCst);
                seen = shared.2.load(Ordering::Acquire);
            });
            assert!(result.is_none());
            assert!(peer.join().unwrap() || seen);
        });
    }
}
