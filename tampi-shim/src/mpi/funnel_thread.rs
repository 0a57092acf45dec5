//! Funnel thread: the thread that alone calls MPI when MPI does not grant all threads, and the
//! calls that other threads submit to it.

use std::sync::mpsc;
use std::thread;

use talpf_primitives::Mutex;

type Call = Box<dyn FnOnce() + Send>;

/// The thread that called [`run`](super::run), and the calls submitted to it.
pub(super) struct FunnelThread {
    thread: thread::Thread,
    calls: Mutex<Vec<Call>>,
}

impl FunnelThread {
    /// Makes the calling thread the funnel thread.
    pub(super) fn current() -> Self {
        FunnelThread { thread: thread::current(), calls: Mutex::default() }
    }

    /// Submits a call. Calls are made in the order in which they are submitted.
    pub(super) fn submit(&self, call: Call) {
        self.calls.lock().push(call);
        self.thread.unpark();
    }

    /// Submits a call and waits for its result. Returns `None` if the funnel thread has ended.
    pub(super) fn call<R: Send + 'static>(
        &self,
        question: impl FnOnce() -> R + Send + 'static,
    ) -> Option<R> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.submit(Box::new(move || drop(answer.send(question()))));
        answered.recv().ok()
    }

    /// Makes the submitted calls and returns their number.
    pub(super) fn run_submitted(&self) -> usize {
        let calls = std::mem::take(&mut *self.calls.lock());
        let count = calls.len();
        calls.into_iter().for_each(|call| call());
        count
    }

    /// Wakes the thread.
    pub(super) fn wake(&self) {
        self.thread.unpark();
    }
}
