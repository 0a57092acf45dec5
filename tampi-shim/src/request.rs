//! Operations under way, as the program holds them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::error::Error;
use crate::status::{Packed, Status};
use crate::ticket::{Awaited, Ended, opened};
use crate::transport::{OperationId, Start, Transport, look_while_spare};

/// A send or receive that was started.
///
/// **Completion**: await it for the buffer and the status: of a send once the buffer may be
/// reused (in synchronous mode: once it is matched), of a receive once the message is in it.
/// Or give it to [`iwait`](crate::iwait). Or drop it: it goes on, and keeps its buffer until then.
///
/// **Errors**: the message is longer than the buffer; a rank failed; arguments that the call was
/// given. The buffer is dropped then; the region of a guard that was to be filled is undefined, and
/// what depends on it does not run.
#[must_use = "await it, give it to `iwait`, or drop it to let it go"]
pub struct Request<B: Send + 'static> {
    /// `None` once the result was taken.
    buffer: Option<B>,
    state: State,
    /// Whether a wait looks for the end before it suspends the task.
    looks: bool,
    /// What becomes of the buffer when the operation has failed.
    lost: fn(B, &Error),
}

enum State {
    /// A send that has ended, and is collected.
    Collected(Packed, Arc<dyn Transport>),
    Ended(Ended),
    UnderWay(UnderWay),
}

struct UnderWay {
    awaited: Awaited,
    operation: OperationId,
    transport: Arc<dyn Transport>,
}

impl<B: Send + 'static> Request<B> {
    /// `start` was given the layout of `buffer`.
    #[inline(always)]
    pub(crate) fn new(buffer: B, start: Start, transport: &Arc<dyn Transport>) -> Self {
        let state = match start {
            Start::Ended(result) => State::Ended(result),
            Start::Collected(status) => State::Collected(status, Arc::clone(transport)),
            Start::UnderWay { awaited, operation } => {
                let transport = Arc::clone(transport);
                State::UnderWay(UnderWay { awaited, operation, transport })
            }
        };
        let lost = |buffer, _: &_| drop(buffer);
        Request { buffer: Some(buffer), state, looks: true, lost }
    }

    /// The same, for an operation that fills the buffer, or a part of it.
    #[inline]
    pub(crate) fn filling(mut self, lost: fn(B, &Error)) -> Self {
        self.lost = lost;
        self
    }

    /// The same, and a wait suspends the task at once: its end needs others, who need the core.
    pub(crate) fn without_looking(mut self) -> Self {
        self.looks = false;
        self
    }

    /// Whether it has ended, so that awaiting it does not wait.
    pub fn has_ended(&self) -> bool {
        match &self.state {
            State::UnderWay(under_way) => under_way.awaited.has_ended(),
            _ => true,
        }
    }

    /// Asks for the operation to be cancelled: a receive that no message was matched to ends with
    /// a status that says so. It is awaited all the same. A send is not cancelled.
    pub fn cancel(&self) {
        if let State::UnderWay(under_way) = &self.state {
            under_way.transport.cancel(under_way.operation);
        }
    }

    /// Gives the buffer, what becomes of it if the operation has failed, and the result to `then`:
    /// here if the operation has ended, else where it ends.
    pub(crate) fn finish(
        mut self,
        then: impl FnOnce(B, fn(B, &Error), Result<Status, Error>) + Send + 'static,
    ) {
        let Some(buffer) = self.buffer.take() else { return };
        let lost = self.lost;
        match self.state.take() {
            State::Collected(status, transport) => {
                transport.flush();
                then(buffer, lost, Ok(status.into()));
            }
            State::Ended(result) => then(buffer, lost, opened(result)),
            State::UnderWay(under_way) => {
                under_way.awaited.call(Box::new(move |result| then(buffer, lost, result)));
            }
        }
    }

    #[cold]
    fn let_go(&mut self, buffer: B) {
        let lost = self.lost;
        match self.state.take() {
            State::Collected(_, transport) => transport.flush(),
            State::Ended(result) => {
                if let Err(error) = result {
                    lost(buffer, &error);
                }
            }
            State::UnderWay(under_way) => {
                under_way.awaited.call(Box::new(move |result| {
                    if let Err(error) = result {
                        lost(buffer, &error);
                    }
                }));
            }
        }
    }
}

impl State {
    /// Leaves one that is not looked at any more.
    fn take(&mut self) -> State {
        std::mem::replace(self, State::Ended(Ok(Status::CANCELLED.into())))
    }

    /// The result, once; else the task will be woken.
    fn poll(&mut self, looks: bool, cx: &mut Context<'_>) -> Option<Ended> {
        match self {
            State::Ended(_) => match self.take() {
                State::Ended(result) => Some(result),
                _ => None,
            },
            State::Collected(status, transport) => {
                transport.flush();
                Some(Ok(*status))
            }
            State::UnderWay(UnderWay { awaited, transport, .. }) => {
                if looks {
                    look_while_spare(&**transport, || awaited.has_ended());
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
        let looks = self.looks;
        let result = match &mut self.state {
            State::Ended(Ok(status)) => Ok(*status),
            state => match state.poll(looks, cx) {
                Some(result) => result,
                None => return Poll::Pending,
            },
        };
        Poll::Ready(match (result, self.buffer.take()) {
            (Ok(status), Some(buffer)) => Ok((buffer, status.into())),
            (Ok(_), None) => Err(Error::Abandoned),
            (Err(error), buffer) => {
                if let Some(buffer) = buffer {
                    // Before anybody can let go of what it holds.
                    (self.lost)(buffer, &error);
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
            self.let_go(buffer);
        }
    }
}

impl<B: Send + 'static> fmt::Debug for Request<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("has_ended", &self.has_ended()).finish_non_exhaustive()
    }
}
