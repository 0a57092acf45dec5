//! Requests: operations under way, as the program holds them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::error::Error;
use crate::status::{PackedStatus, Status};
use crate::ticket::{Awaited, PackedResult, unpacked};
use crate::transport::{OperationId, Start, Transport, spin_while_spare};

/// A started send, receive or collective, which keeps its buffer until it has ended.
///
/// **Completion**: awaiting the request returns the buffer and the status: of a send once the
/// buffer may be reused (in synchronous mode: once the message is matched), of a receive once the
/// message is in the buffer. [`iwait`](crate::iwait()) binds the request to the running task
/// instead. A dropped request continues, and keeps its buffer until it has ended.
///
/// **Errors**: the message is longer than the buffer; a rank failed; invalid arguments of the call
/// that started the request. The buffer is dropped then; the region of a guard that was to be
/// filled is poisoned, and tasks that depend on it do not run.
#[must_use = "await the request, give it to `iwait`, or drop it to detach it"]
pub struct Request<B: Send + 'static> {
    /// `None` once the result is taken.
    buffer: Option<B>,
    state: State,
    /// `true` if a wait polls for a while before it suspends the task.
    spins: bool,
    /// Disposes of the buffer of a failed operation.
    on_failure: fn(B, &Error),
}

enum State {
    /// A send that has ended, whose message is in a batch that is not posted yet.
    Batched(PackedStatus, Arc<dyn Transport>),
    Ended(PackedResult),
    UnderWay(UnderWay),
}

struct UnderWay {
    awaited: Awaited,
    operation: OperationId,
    transport: Arc<dyn Transport>,
}

impl<B: Send + 'static> Request<B> {
    /// Creates the request of an operation that was started on the layout of `buffer`.
    #[inline(always)]
    pub(crate) fn new(buffer: B, start: Start, transport: &Arc<dyn Transport>) -> Self {
        let state = match start {
            Start::Ended(result) => State::Ended(result),
            Start::Batched(status) => State::Batched(status, Arc::clone(transport)),
            Start::UnderWay { awaited, operation } => {
                let transport = Arc::clone(transport);
                State::UnderWay(UnderWay { awaited, operation, transport })
            }
        };
        let on_failure = |buffer, _: &_| drop(buffer);
        Request { buffer: Some(buffer), state, spins: true, on_failure }
    }

    /// Sets the action that disposes of the buffer if the operation fails, for an operation that
    /// fills the buffer or a part of it.
    #[inline]
    pub(crate) fn on_failure(mut self, on_failure: fn(B, &Error)) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// Makes a wait suspend the task at once: the operation ends only when other ranks run, which
    /// need the core.
    pub(crate) fn without_spinning(mut self) -> Self {
        self.spins = false;
        self
    }

    /// Returns `true` once the operation has ended, so that awaiting the request does not wait.
    pub fn has_ended(&self) -> bool {
        match &self.state {
            State::UnderWay(under_way) => under_way.awaited.has_ended(),
            _ => true,
        }
    }

    /// Asks for the operation to be cancelled. A receive that no message is matched to ends with a
    /// status that [is cancelled](Status::is_cancelled); it has to be awaited all the same. Sends
    /// cannot be cancelled.
    pub fn cancel(&self) {
        if let State::UnderWay(under_way) = &self.state {
            under_way.transport.cancel(under_way.operation);
        }
    }

    /// Calls `then` with the buffer, its failure action and the result: here if the operation has
    /// ended, otherwise on the thread that ends it.
    pub(crate) fn finish(
        mut self,
        then: impl FnOnce(B, fn(B, &Error), Result<Status, Error>) + Send + 'static,
    ) {
        let Some(buffer) = self.buffer.take() else { return };
        let on_failure = self.on_failure;
        match self.state.take() {
            State::Batched(status, transport) => {
                transport.flush();
                then(buffer, on_failure, Ok(status.into()));
            }
            State::Ended(result) => then(buffer, on_failure, unpacked(result)),
            State::UnderWay(under_way) => {
                under_way.awaited.call(Box::new(move |result| then(buffer, on_failure, result)));
            }
        }
    }

    #[cold]
    fn detach(&mut self, buffer: B) {
        let on_failure = self.on_failure;
        match self.state.take() {
            State::Batched(_, transport) => transport.flush(),
            State::Ended(result) => {
                if let Err(error) = result {
                    on_failure(buffer, &error);
                }
            }
            State::UnderWay(under_way) => {
                under_way.awaited.call(Box::new(move |result| {
                    if let Err(error) = result {
                        on_failure(buffer, &error);
                    }
                }));
            }
        }
    }
}

impl State {
    /// Takes the state out and leaves one that is not read any more.
    fn take(&mut self) -> State {
        std::mem::replace(self, State::Ended(Ok(Status::CANCELLED.into())))
    }

    /// Returns the result, once, if the operation has ended; otherwise has the task woken when it
    /// ends.
    fn poll(&mut self, spins: bool, cx: &mut Context<'_>) -> Option<PackedResult> {
        match self {
            State::Ended(_) => match self.take() {
                State::Ended(result) => Some(result),
                _ => None,
            },
            State::Batched(status, transport) => {
                transport.flush();
                Some(Ok(*status))
            }
            State::UnderWay(UnderWay { awaited, transport, .. }) => {
                if spins {
                    spin_while_spare(&**transport, || awaited.has_ended());
                } else {
                    transport.flush();
                }
                let result = awaited.poll(cx.waker());
                if result.is_none() {
                    talpf_runtime::note_wait("a message");
                }
                result
            }
        }
    }
}

impl<B: Send + 'static> Unpin for Request<B> {}

impl<B: Send + 'static> Future for Request<B> {
    type Output = Result<(B, Status), Error>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let spins = self.spins;
        let result = match &mut self.state {
            State::Ended(Ok(status)) => Ok(*status),
            state => match state.poll(spins, cx) {
                Some(result) => result,
                None => return Poll::Pending,
            },
        };
        Poll::Ready(match (result, self.buffer.take()) {
            (Ok(status), Some(buffer)) => Ok((buffer, status.into())),
            (Ok(_), None) => Err(Error::Abandoned),
            (Err(error), buffer) => {
                if let Some(buffer) = buffer {
                    // Before the caller sees the error and can release what the buffer holds.
                    (self.on_failure)(buffer, &error);
                }
                Err(*error)
            }
        })
    }
}

impl<B: Send + 'static> Drop for Request<B> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.detach(buffer);
        }
    }
}

impl<B: Send + 'static> fmt::Debug for Request<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("has_ended", &self.has_ended()).finish_non_exhaustive()
    }
}
