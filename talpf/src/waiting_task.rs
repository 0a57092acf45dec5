//! The task that waits at an end, for whoever ends the wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Context;

use futures::task::AtomicWaker;

use crate::foreign;
use crate::sender::Sender;

/// The waker of the task that waits at an end, one at a time.
///
/// A task announces itself and then tests once more what it waits for; whoever changes that wakes the
/// task afterwards. One of the two sees the other.
#[derive(Debug, Default)]
pub(crate) struct WaitingTask {
    waker: AtomicWaker,
    /// Set from an announcement until the task is woken. A hint, for reports.
    is_announced: AtomicBool,
}

impl WaitingTask {
    /// Announces the task of `cx`, in place of the one before.
    pub(crate) fn announce(&self, cx: &Context<'_>) {
        self.is_announced.store(true, Ordering::Relaxed);
        self.waker.register(cx.waker());
    }

    /// Returns `true` if a task waits. A hint.
    pub(crate) fn is_announced(&self) -> bool {
        self.is_announced.load(Ordering::Relaxed)
    }

    /// Wakes the task, if one waits. `sender` is of a rank that fails if that panics. The caller holds
    /// no lock.
    #[inline]
    pub(crate) fn wake(&self, sender: &Sender) {
        let Some(waker) = self.waker.take() else { return };
        self.is_announced.store(false, Ordering::Relaxed);
        if let Err(panic) = foreign::call("a waker", || waker.wake()) {
            sender.fail_foreign("a waker", &panic);
        }
    }
}
