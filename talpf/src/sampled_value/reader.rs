//! The reading end of a sampled value.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytemuck::Pod;
use futures::Stream;

use super::arrivals::Arrivals;
use super::exchange::Front;
use super::message::End;
use crate::error::{EndError, Error};
use crate::numbers::Rank;
use crate::registration::Registration;

const NAME: &str = "reader of a sampled value";

/// A reading end of a [`SampledValue`](crate::SampledValue): at any time the latest value, and a
/// [`Stream`] of later ones.
///
/// The stream skips values that were written while nobody took one, and a value that `latest` has
/// returned: it is never behind. It ends with the writer, after the last value.
///
/// **Ordering**: of two values that are taken one after the other, the second was not written before
/// the first. Nothing orders two readers.
/// **Errors**: of the stream: a writer lost in a panic, or a run that has failed
/// ([`EndError::Failed`]), after which the stream ends.
pub struct SampleReader<T: Pod + Send + Sync> {
    arrivals: Arc<Arrivals<T>>,
    front: Front,
    registration: Arc<Registration>,
    /// Set once the stream has ended.
    is_over: bool,
}

impl<T: Pod + Send + Sync> SampleReader<T> {
    pub(super) fn new(
        arrivals: Arc<Arrivals<T>>,
        front: Front,
        registration: &Arc<Registration>,
    ) -> Self {
        let registration = Arc::clone(registration);
        SampleReader { arrivals, front, registration, is_over: false }
    }

    /// Returns the rank that writes the value.
    pub fn writer(&self) -> Rank {
        self.arrivals.writer()
    }

    /// Returns the latest value that has come, or the initial one. Never waits.
    ///
    /// **Cost**: a copy.
    #[inline]
    pub fn latest(&mut self) -> T {
        self.arrivals.buffers.take(&mut self.front);
        self.arrivals.buffers.read(&self.front)
    }

    /// Takes a value that has come since the last one was taken.
    #[inline]
    fn take(&mut self) -> Option<T> {
        let is_fresh = self.arrivals.buffers.take(&mut self.front);
        is_fresh.then(|| self.arrivals.buffers.read(&self.front))
    }

    /// Takes what there is: a value, or the end.
    fn take_or_end(&mut self) -> Poll<Option<Result<T, Error>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        // Before the values: the end comes after the last one.
        let end = self.arrivals.end();
        if let Some(value) = self.take() {
            return Poll::Ready(Some(Ok(value)));
        }
        let notifications = &self.arrivals.notifications;
        let error = match (end, notifications.round().sender.error()) {
            (Some(End::Closed), _) => None,
            (Some(End::Lost), _) => {
                let (rank, writer) = (notifications.rank(), self.writer());
                let reason = format!("a body of {writer} that writes has panicked");
                Some(Error::End(EndError::Failed { rank, end: NAME, reason }))
            }
            (None, Some(error)) => Some(EndError::of_run(notifications.rank(), NAME, error)),
            (None, None) => return Poll::Pending,
        };
        self.is_over = true;
        Poll::Ready(error.map(Err))
    }
}

impl<T: Pod + Send + Sync> Unpin for SampleReader<T> {}

impl<T: Pod + Send + Sync> Stream for SampleReader<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<T, Error>>> {
        let this = &mut *self;
        let ready = this.take_or_end();
        if ready.is_ready() {
            return ready;
        }
        let arrivals = &this.arrivals;
        let is_fresh = || arrivals.buffers.is_fresh().then_some(());
        arrivals.notifications.round().poll_while_spare(is_fresh);
        arrivals.task.announce(cx);
        let ready = this.take_or_end();
        if ready.is_pending() {
            talpf_runtime::note_wait("a sampled value");
        }
        ready
    }
}

impl<T: Pod + Send + Sync> Drop for SampleReader<T> {
    fn drop(&mut self) {
        if self.arrivals.end().is_none() {
            // The writer may still put.
            self.registration.keep();
        }
    }
}

impl<T: Pod + Send + Sync> fmt::Debug for SampleReader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SampleReader of {}", self.arrivals.notifications.rank())
    }
}
