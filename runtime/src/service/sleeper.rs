//! Sleep of the task of a service. The README beside this file says why it misses nothing.

use std::task::Waker;

use talpf_primitives::{AtomicBool, Mutex, Ordering, fence};

/// State of a sleep, and the waker of the task that sleeps.
#[derive(Debug, Default)]
pub struct Sleeper {
    asleep: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Sleeper {
    /// Returns `true` if the task sleeps, or is about to and will poll once more before.
    ///
    /// **Ordering**: a sequentially consistent write before this call is seen by that last poll, or
    /// this returns `true`. **Cost**: a load.
    #[inline]
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::SeqCst)
    }

    /// Wakes the task if it sleeps.
    ///
    /// **Ordering**: any write before this call is seen by the last poll before the sleep, or the
    /// task is woken. **Cost**: a fence and a load if the task does not sleep.
    pub fn wake(&self) {
        fence(Ordering::SeqCst);
        // First, for a task that is about to register its waker.
        if self.is_asleep() && self.asleep.swap(false, Ordering::AcqRel) {
            let waker = self.waker.lock().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Announces the sleep of the task, which polls once more before it sleeps.
    pub fn announce(&self) {
        // An update, as those of wakers are, so that all of them have one order.
        self.asleep.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    /// Registers the waker of the task. Returns `false` if the task was woken since its sleep was
    /// announced.
    pub(super) fn register(&self, waker: &Waker) -> bool {
        self.replace(Some(waker.clone()));
        self.is_asleep()
    }

    /// Marks the task as awake.
    pub(super) fn end(&self) {
        self.asleep.swap(false, Ordering::AcqRel);
        self.replace(None);
    }

    /// Replaces the waker. The one before is dropped under no lock: it is foreign code.
    fn replace(&self, waker: Option<Waker>) {
        let before = std::mem::replace(&mut *self.waker.lock(), waker);
        drop(before);
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
