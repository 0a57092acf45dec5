//! Calls of MPI that block until other ranks take part: on a thread of their own, so that no
//! worker waits in them. If MPI does not grant all threads they are made at home, one after the
//! other: a program must make them in the same order at all ranks then.

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

/// The calls that block.
#[derive(Default)]
pub(super) struct Asides {
    under_way: AtomicUsize,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Asides {
    pub(super) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::SeqCst)
    }

    /// Waits until none is left. Every rank takes part in what they wait for, so they end.
    pub(super) fn join(&self) {
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // It does not panic.
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
    /// Makes a call that may block.
    ///
    /// **Errors**: the system refuses a thread.
    pub(super) fn aside(&self, call: impl FnOnce(&Self) + Send + 'static) -> Result<(), Error> {
        let me = self.me.upgrade().ok_or(Error::Abandoned)?;
        self.asides.under_way.fetch_add(1, Ordering::SeqCst);
        self.wake_poller();
        let whole = move || {
            call(&me);
            me.asides.under_way.fetch_sub(1, Ordering::SeqCst);
        };
        if !self.library.may_call_anywhere() {
            self.home.order(Box::new(whole));
            return Ok(());
        }
        let named = thread::Builder::new().name("tampi-aside".to_owned());
        match named.spawn(whole) {
            Ok(thread) => self.asides.keep(thread),
            Err(reason) => {
                self.asides.under_way.fetch_sub(1, Ordering::SeqCst);
                let reason = format!("no thread to call it: {reason}");
                return Err(Refused { call: "a call that blocks", code: 0, reason }.into());
            }
        }
        Ok(())
    }

    /// As [`MpiTransport::aside`], for a task that waits for the result.
    pub(super) fn wait_aside<R, C>(
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
        let started = self.aside(move |this| {
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
