//! The words that keep the sleep of a polling task from losing anything.
//!
//! | who sleeps writes | then looks at | who brings something writes | then looks at |
//! |---|---|---|---|
//! | [`Sleeper`]: asleep | what is collected | [`Collecting`]: one more link | the sleeper |
//! | the word of [`is_to_ring`], at the peer | its rings | a cell | that word |
//!
//! A sequentially consistent fence stands between what each writes and what it looks at, so in each
//! row one of the two sees the other. The README beside this file says what they do then.

use std::task::Waker;

use talpf_primitives::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, fence};

/// Wakes a polling task that sleeps.
#[derive(Default)]
pub(super) struct Sleeper {
    asleep: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Sleeper {
    /// Whether the task sleeps, or is about to and will look at what was collected before.
    #[inline]
    pub(super) fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Acquire)
    }

    /// The task says so before it looks for the last time.
    pub(super) fn falls_asleep(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Has `waker` woken, unless the task was woken already since it fell asleep.
    pub(super) fn waits(&self, waker: &Waker) -> bool {
        self.replace(Some(waker.clone()));
        self.is_asleep()
    }

    /// The task is awake.
    pub(super) fn is_up(&self) {
        self.asleep.store(false, Ordering::Relaxed);
        self.replace(None);
    }

    /// Keeps another waker. The one before is dropped under no lock: it is foreign code.
    fn replace(&self, waker: Option<Waker>) {
        let before = std::mem::replace(&mut *self.waker.lock(), waker);
        drop(before);
    }

    /// To be called after what the task is to see was written.
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

/// How many links of a rank collect short messages.
#[derive(Default)]
pub(super) struct Collecting(AtomicUsize);

impl Collecting {
    /// One more link does. Whoever says so looks at the [`Sleeper`] next.
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

/// Whether the peer whose word this is sleeps, and this caller is the one to ring. To be called
/// after what the peer is to see was written.
#[inline]
pub(super) fn is_to_ring(asleep: &AtomicU64) -> bool {
    fence(Ordering::SeqCst);
    asleep.load(Ordering::Relaxed) != 0 && asleep.swap(0, Ordering::SeqCst) != 0
}

/// Comes between telling the peers that this rank sleeps and its last look at the rings.
pub(super) fn before_the_last_look() {
    fence(Ordering::SeqCst);
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
