//! Waiting for a future on a thread that is not a worker.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use talpf_primitives::thread::{self, Thread};
use talpf_primitives::{AtomicBool, Mutex, Ordering};

use super::Shared;
use super::blocked_thread::own_id;
use super::check_blocking::check_blocking;
use super::io::enter_tokio;
use crate::error::Error;
use crate::record::take_note;

/// A thread that blocks on a future.
pub(crate) struct Blocked {
    thread: Thread,
    /// System identifier of the thread.
    id: u32,
    /// `true` once the thread has been woken, until it polls again.
    woken: AtomicBool,
    /// `true` while the thread polls, and does not wait yet.
    polls: AtomicBool,
    /// Reason of the wait, if the runtime knows it.
    waits_for: Mutex<Option<&'static str>>,
}

impl Wake for Blocked {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

impl Blocked {
    /// Returns the reason why the thread waits; `None` if it may go on, or the runtime does not
    /// know.
    pub(super) fn waits_for(&self) -> Option<&'static str> {
        if self.woken.load(Ordering::SeqCst) { None } else { *self.waits_for.lock() }
    }

    /// Returns `true` if the thread waits, and nothing has woken it.
    pub(super) fn is_waiting(&self) -> bool {
        !self.polls.load(Ordering::SeqCst) && !self.woken.load(Ordering::SeqCst)
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn unpark(&self) {
        self.thread.unpark();
    }
}

/// Blocks until the future ends, or the runtime hangs.
///
/// **Errors**: called in a task; a hang.
pub(crate) fn block_on<F: Future>(
    shared: &Shared,
    call: &'static str,
    future: F,
) -> Result<F::Output, Error> {
    check_blocking(call)?;
    let _tokio = enter_tokio(&shared.tokio);
    let mut future = pin!(future);
    let (thread, woken, waits_for) = (thread::current(), AtomicBool::new(true), Mutex::new(None));
    let polls = AtomicBool::new(true);
    let blocked = Arc::new(Blocked { thread, id: own_id(), woken, polls, waits_for });
    let _listed = Listed::enter(shared, &blocked);
    let waker = Waker::from(Arc::clone(&blocked));
    let mut context = Context::from_waker(&waker);
    loop {
        take_note();
        shared.blocked_polls.fetch_add(1, Ordering::Relaxed);
        *blocked.waits_for.lock() = None;
        blocked.polls.store(true, Ordering::SeqCst);
        blocked.woken.store(false, Ordering::SeqCst);
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            take_note();
            return Ok(output);
        }
        *blocked.waits_for.lock() = take_note();
        if let Some(report) = shared.hang.report() {
            return Err(Error::Hang(report));
        }
        blocked.polls.store(false, Ordering::SeqCst);
        match shared.hang.period(&shared.config) {
            // The workers may all be locked out.
            Some(period) => {
                thread::park_timeout(period);
                shared.watchdog.watch(shared);
            }
            None => thread::park(),
        }
    }
}

/// Entry of a thread in the list of blocked threads, until it drops.
struct Listed<'a> {
    shared: &'a Shared,
    blocked: &'a Arc<Blocked>,
}

impl<'a> Listed<'a> {
    fn enter(shared: &'a Shared, blocked: &'a Arc<Blocked>) -> Self {
        shared.blocked.lock().push(Arc::clone(blocked));
        Listed { shared, blocked }
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.shared.blocked.lock().retain(|other| !Arc::ptr_eq(other, self.blocked));
    }
}
