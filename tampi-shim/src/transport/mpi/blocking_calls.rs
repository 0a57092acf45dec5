//! Blocking calls of MPI, which return only when other ranks take part. Each is made on a thread of
//! its own, so that no worker waits in it.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use talpf_primitives::Mutex;

use super::Refused;
use super::transport::MpiTransport;
use crate::communicator::Communicator;
use crate::error::Error;
use crate::rank::Rank;
use crate::request::Request;
use crate::status::Status;
use crate::tag::Tag;
use crate::ticket::ticket;
use crate::transport::{OperationId, Start};

/// Blocking calls under way, and their threads.
#[derive(Default)]
pub(super) struct BlockingCalls {
    under_way: AtomicUsize,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl BlockingCalls {
    /// Returns the number of calls under way.
    pub(super) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::SeqCst)
    }

    /// Waits until no call is left. Every rank takes part in each call, so all return.
    pub(super) fn join(&self) {
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // The thread does not panic.
            let _ = thread.join();
        }
    }

    fn keep(&self, thread: JoinHandle<()>) {
        let mut threads = self.threads.lock();
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }
}

impl MpiTransport {
    /// Makes a blocking call on another thread.
    ///
    /// **Errors**: the system cannot start a thread.
    pub(super) fn spawn_blocking(
        &self,
        call: impl FnOnce(&Self) + Send + 'static,
    ) -> Result<(), Error> {
        let me = self.me.upgrade().ok_or(Error::Abandoned)?;
        self.blocking_calls.under_way.fetch_add(1, Ordering::SeqCst);
        self.sleeper.wake();
        let whole = move || {
            call(&me);
            me.blocking_calls.under_way.fetch_sub(1, Ordering::SeqCst);
        };
        let named = thread::Builder::new().name("tampi-blocking".to_owned());
        match named.spawn(whole) {
            Ok(thread) => self.blocking_calls.keep(thread),
            Err(reason) => {
                self.blocking_calls.under_way.fetch_sub(1, Ordering::SeqCst);
                let reason = format!("cannot start a thread: {reason}");
                return Err(Refused { call: "a blocking call", code: 0, reason }.into());
            }
        }
        Ok(())
    }

    /// Makes a blocking call on another thread and waits for its result. As
    /// [`MpiTransport::spawn_blocking`].
    pub(super) fn await_blocking<R, C>(
        &self,
        communicator: &Communicator,
        call: C,
    ) -> impl Future<Output = Result<R, Error>> + Send + use<R, C>
    where
        R: Send + 'static,
        C: FnOnce(&Self) -> Result<R, Refused> + Send + 'static,
    {
        let (ticket, awaited) = ticket();
        let result = Arc::new(Mutex::new(None));
        let to = Arc::clone(&result);
        let started = self.spawn_blocking(move |this| {
            *to.lock() = Some(call(this));
            let (source, tag) = (Rank(this.library.rank()), Tag(0));
            ticket.complete(Ok(Status::new(source, tag, 0)));
        });
        let start = match started {
            Ok(()) => Start::UnderWay { awaited, operation: OperationId::NONE },
            Err(error) => Start::failed(error),
        };
        let request = Request::new((), start, communicator.transport());
        async move {
            request.await?;
            let result = result.lock().take();
            Ok(result.ok_or(Error::Abandoned)??)
        }
    }
}
