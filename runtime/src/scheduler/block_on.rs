//! Waiting for a future from a thread that is no worker.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use super::Shared;
use crate::error::Error;
use crate::task::take_note;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks until the future ends, or the runtime hangs.
///
/// **Errors**: called on a worker; a hang.
pub(crate) fn block_on<F: Future>(
    shared: &Shared,
    call: &'static str,
    future: F,
) -> Result<F::Output, Error> {
    if super::on_worker() {
        return Err(Error::BlockingInTask(call));
    }
    let _tokio = shared.tokio.enter();
    let blocked = Blocked::enter(shared);
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        take_note();
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            take_note();
            return Ok(output);
        }
        blocked.waits_for(take_note());
        if let Some(report) = shared.hang.report() {
            return Err(Error::Hang(report));
        }
        thread::park();
    }
}

/// A thread on the list of those that block.
struct Blocked<'a>(&'a Shared);

impl<'a> Blocked<'a> {
    fn enter(shared: &'a Shared) -> Self {
        shared.blocked.lock().push((thread::current(), None));
        Blocked(shared)
    }

    fn waits_for(&self, what: Option<&'static str>) {
        let this = thread::current().id();
        let mut blocked = self.0.blocked.lock();
        if let Some((_, waits_for)) = blocked.iter_mut().find(|(thread, _)| thread.id() == this) {
            *waits_for = what;
        }
    }
}

impl Drop for Blocked<'_> {
    fn drop(&mut self) {
        let this = thread::current().id();
        let mut blocked = self.0.blocked.lock();
        if let Some(at) = blocked.iter().position(|(thread, _)| thread.id() == this) {
            blocked.swap_remove(at);
        }
    }
}
