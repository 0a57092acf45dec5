//! Sleep of a polling task: the words that keep it from missing a message or a batch.
//!
//! | the sleeper writes | then reads | the other thread writes | then reads |
//! |---|---|---|---|
//! | [`Sleeper`]: asleep | [`BatchingLinks`] | [`BatchingLinks`]: one more link | the sleeper |
//! | the word of [`must_ring_doorbell`], at the peer | its rings | a cell | that word |
//!
//! A sequentially consistent fence separates the write of each thread from its read, so in each row
//! at least one of the two sees the write of the other. The README beside this file says what they
//! do then.

use std::task::Waker;

use talpf_primitives::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, fence};

/// Sleep state of a polling task, and its waker.
#[derive(Default)]
pub(super) struct Sleeper {
    asleep: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Sleeper {
    /// Returns `true` if the task sleeps, or is about to and will check for batches before.
    #[inline]
    pub(super) fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Acquire)
    }

    /// Marks the task as asleep. The task calls it before it polls for the last time.
    pub(super) fn prepare_sleep(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Registers the waker of the task. Returns `false` if the task was woken already since it was
    /// marked as asleep.
    pub(super) fn register(&self, waker: &Waker) -> bool {
        self.replace(Some(waker.clone()));
        self.is_asleep()
    }

    /// Marks the task as awake.
    pub(super) fn end_sleep(&self) {
        self.asleep.store(false, Ordering::Relaxed);
        self.replace(None);
    }

    /// Replaces the waker. The previous one is dropped under no lock: it is foreign code.
    fn replace(&self, waker: Option<Waker>) {
        let before = std::mem::replace(&mut *self.waker.lock(), waker);
        drop(before);
    }

    /// Wakes the task if it sleeps. To be called after the write that the task has to see.
    pub(super) fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::AcqRel) {
            let waker = self.waker.lock().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

/// Number of links of a rank that have a batch.
#[derive(Default)]
pub(super) struct BatchingLinks(AtomicUsize);

impl BatchingLinks {
    /// Counts one more link. The caller reads the [`Sleeper`] next.
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
