//! The sleeper of a port: somebody that sleeps until something arrives or can be sent, and is called about what finds no
//! room meanwhile.

use std::sync::OnceLock;

use talpf_primitives::{AtomicBool, Ordering};

use crate::callback;

#[derive(Default)]
pub(super) struct Sleeper {
    /// Set from before the rail is armed until a thread is about to poll it.
    is_armed: AtomicBool,
    if_unsent: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Sleeper {
    /// Has `call` called about what finds no room while the rail is armed, unless there is such a call.
    pub(super) fn call_if_unsent(&self, call: Box<dyn Fn() + Send + Sync>) {
        let _ = self.if_unsent.set(call);
    }

    /// Notes that the rail is about to be armed.
    ///
    /// A thread that has a packet refused or put back into the queue later finds this noted, by the locks of the
    /// rail and of the queue, and calls.
    pub(super) fn arm(&self) {
        self.is_armed.store(true, Ordering::Release);
    }

    /// Notes that the rail is about to be polled.
    pub(super) fn disarm(&self) {
        if self.is_armed.load(Ordering::Relaxed) {
            // What somebody who arms the rail meanwhile has done before is seen by the caller, who wakes that one.
            self.is_armed.swap(false, Ordering::AcqRel);
        }
    }

    /// Calls about packets that the rail has not taken, if somebody may sleep.
    pub(super) fn note_taken(&self, is_taken: bool) {
        if !is_taken
            && self.is_armed.load(Ordering::Acquire)
            && let Some(call) = self.if_unsent.get()
        {
            callback::call("a call about what is not sent", call);
        }
    }
}
