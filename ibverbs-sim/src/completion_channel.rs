//! Waiting for completions without polling.
//!
//! A channel holds at most one undelivered event, however many of its completion queues fired.
//! Firing stores the event before it looks for waiters; a waiter registers before it looks for
//! the event again. One of the two sees the other.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use talpf_primitives::{AtomicBool, Mutex, Ordering};

use crate::callback;

/// Tells that a completion queue armed with
/// [`request_notify`](crate::CompletionQueue::request_notify) has a new completion. Clones are
/// the same channel; several completion queues may share one.
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
    /// A channel without an event.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the event if there is one; never waits.
    pub fn try_notified(&self) -> bool {
        self.core.event.load(Ordering::Relaxed) && self.core.event.swap(false, Ordering::SeqCst)
    }

    /// Takes the event, waiting for one first. Works under any executor and may be dropped at
    /// any time; of several waiters each event reaches one.
    ///
    /// **Ordering**: arm, then poll until empty, then wait; an entry that came before the arming
    /// fires nothing.
    pub async fn notified(&self) {
        poll_fn(|context| {
            if self.try_notified() {
                return Poll::Ready(());
            }
            // Under no lock: it is foreign code.
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

    /// Leaves an event and wakes whoever waits for it. A waker that panics keeps neither the others
    /// from being woken nor the caller from going on.
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
