//! The sleep of a polling task.

use std::task::Waker;

use talpf_primitives::{AtomicBool, Mutex, Ordering};

/// Wakes a polling task that sleeps.
#[derive(Default)]
pub(crate) struct Sleeper {
    asleep: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Sleeper {
    /// Returns `true` if the task sleeps or is about to, after one more check of everything.
    #[inline]
    pub(crate) fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::SeqCst)
    }

    /// Announces the sleep of the task, which checks everything once more before it sleeps.
    pub(crate) fn fall_asleep(&self) {
        self.asleep.store(true, Ordering::SeqCst);
    }

    /// Wakes the task if it sleeps.
    ///
    /// **Cost**: a load when the task does not sleep.
    pub(crate) fn wake(&self) {
        if self.asleep.load(Ordering::SeqCst) {
            // Before the waker is taken, for a task that is about to register it.
            self.asleep.store(false, Ordering::SeqCst);
            let waker = self.waker.lock().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Registers the waker of the task. Returns `true` if the task was woken before that.
    pub(super) fn register(&self, waker: &Waker) -> bool {
        *self.waker.lock() = Some(waker.clone());
        !self.asleep.load(Ordering::SeqCst)
    }

    /// Notes that the task runs again.
    pub(super) fn get_up(&self) {
        self.asleep.store(false, Ordering::SeqCst);
        self.waker.lock().take();
    }
}
