//! Changes: whatever a service may find that nobody announces to it.
//!
//! The executor notes a change with each task that is no service and each event of a source, and a
//! service with each poll that finds something. A service that waits for a change costs nothing until
//! there is one.

use std::task::{Poll, Waker};

use talpf_primitives::{AtomicU64, Mutex, Ordering};

/// The changes of a run, and the services that wait for the next one.
#[derive(Default)]
pub(crate) struct Changes {
    /// Number of changes, which the thread of the executor alone counts.
    count: AtomicU64,
    waiting: Mutex<Vec<Waker>>,
    /// Number of wakers, so that a change takes no lock if there are none.
    waiting_count: AtomicU64,
}

impl Changes {
    /// Returns the number of changes so far.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Notes a change.
    #[inline]
    pub(crate) fn note(&self) {
        self.count.store(self.count() + 1, Ordering::Relaxed);
        if self.waiting_count.load(Ordering::Relaxed) > 0 {
            self.wake_all();
        }
    }

    /// Polls for a change after the first `since`.
    pub(crate) fn poll(&self, since: u64, waker: &Waker) -> Poll<()> {
        if self.count() != since {
            return Poll::Ready(());
        }
        let mut waiting = self.waiting.lock();
        waiting.push(waker.clone());
        self.waiting_count.store(waiting.len() as u64, Ordering::Relaxed);
        Poll::Pending
    }

    #[cold]
    fn wake_all(&self) {
        let wakers = std::mem::take(&mut *self.waiting.lock());
        self.waiting_count.store(0, Ordering::Relaxed);
        wakers.into_iter().for_each(Waker::wake);
    }
}
