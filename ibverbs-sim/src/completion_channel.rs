//! Channels that notify a waiting thread of completions.
//!
//! A channel holds at most one undelivered event, regardless of the number of completion queues
//! that fired. Firing stores the event before it checks for waiters; a waiter registers before it
//! checks for the event again. One of the two sees the other.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use talpf_primitives::{AtomicBool, Mutex, Ordering};

use crate::callback;

/// A channel that receives an event when a completion queue armed with
/// [`request_notify`](crate::CompletionQueue::request_notify) gets a new completion. Clones are the
/// same channel; several completion queues may share one.
#[derive(Clone, Debug, Default)]
pub struct CompletionChannel {
    core: Arc<ChannelCore>,
}

#[derive(Debug, Default)]
struct ChannelCore {
    event: AtomicBool,
    waiters: Mutex<Vec<Waker>>,
}

impl CompletionChannel {
    /// Creates a channel without an event.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the event and returns `true`, or returns `false` if there is none. Never waits.
    pub fn try_notified(&self) -> bool {
        self.core.event.load(Ordering::Relaxed) && self.core.event.swap(false, Ordering::SeqCst)
    }

    /// Waits for an event and takes it. Works under any executor and may be dropped at any time;
    /// each event reaches one of several waiters.
    ///
    /// **Ordering**: arm, then poll until empty, then wait; an entry that arrived before the arming
    /// fires nothing.
    pub async fn notified(&self) {
        poll_fn(|context| {
            if self.try_notified() {
                return Poll::Ready(());
            }
            // Cloned under no lock, since a waker is code of the program.
            let waker = context.waker().clone();
            let mut waiters = self.core.waiters.lock();
            let known = waiters.iter().any(|waiter| waiter.will_wake(&waker));
            let spare = if known {
                Some(waker)
            } else {
                waiters.push(waker);
                None
            };
            drop(waiters);
            drop(spare);
            if self.try_notified() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Stores an event and wakes all waiters. A waker that panics does not prevent the others from
    /// being woken, and the panic does not reach the caller.
    pub(crate) fn fire(&self) {
        self.core.event.store(true, Ordering::SeqCst);
        let waiters = std::mem::take(&mut *self.core.waiters.lock());
        for waiter in waiters {
            callback::call("a waker", || waiter.wake());
        }
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
