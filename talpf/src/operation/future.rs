//! The future of an operation, for the body that has issued it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use talpf_primitives::Mutex;
use talpf_runtime::PendingEvent;

use super::pending::Done;
use super::registration::Registered;
use super::transfer::Verb;
use crate::error::Error;
use crate::foreign;
use crate::numbers::Rank;
use crate::sender::RoundState;

/// An operation under way.
///
/// **Completion**: an `await` ends with *local* completion and returns the guard: the region may be
/// reused, and after a get or an atomic it holds the result. A dropped `Operation` goes on: the
/// guard, and with it the task, is held until then.
#[must_use = "await it for the guard, or drop it by `let _ =`"]
pub struct Operation<G> {
    /// The guard, once it is returned. A field of its own: as part of a larger type it would be
    /// moved in other pieces than it was stored in, which costs a short put half of its time.
    guard: Option<G>,
    rest: Option<Box<Rest<G>>>,
}

/// The state of an operation that has not returned its guard.
enum Rest<G> {
    UnderWay(Awaited<G>),
    Failed(Error),
}

/// The waiting side of an operation.
struct Awaited<G> {
    shared: Arc<Mutex<UnderWay<G>>>,
    round: Arc<RoundState>,
}

enum UnderWay<G> {
    /// Waker of the task that has polled it, and its round, which a panic of the waker fails.
    Waiting(Option<(Waker, Arc<RoundState>)>),
    Ended(Option<Result<G, Error>>),
    Detached,
}

/// The completing side of an operation.
pub(super) struct Completer<G>(Arc<Mutex<UnderWay<G>>>);

impl<G> Operation<G> {
    #[inline]
    pub(super) fn returned(guard: G) -> Self {
        Operation { guard: Some(guard), rest: None }
    }

    #[cold]
    pub(super) fn failed(error: Error) -> Self {
        Operation { guard: None, rest: Some(Box::new(Rest::Failed(error))) }
    }

    pub(super) fn under_way(round: &Arc<RoundState>) -> (Self, Completer<G>) {
        let shared = Arc::new(Mutex::new(UnderWay::Waiting(None)));
        let awaited = Awaited { shared: Arc::clone(&shared), round: Arc::clone(round) };
        let rest = Some(Box::new(Rest::UnderWay(awaited)));
        (Operation { guard: None, rest }, Completer(shared))
    }

    /// Polls an operation without its guard. Returns `true` once it has ended.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(Rest::UnderWay(awaited)) = self.rest.as_deref() else {
            return true;
        };
        match awaited.poll(cx) {
            Poll::Pending => return false,
            Poll::Ready(Ok(guard)) => (self.guard, self.rest) = (Some(guard), None),
            Poll::Ready(Err(error)) => self.rest = Some(Box::new(Rest::Failed(error))),
        }
        true
    }

    #[cold]
    fn error(&mut self) -> Error {
        match self.rest.take().map(|rest| *rest) {
            Some(Rest::Failed(error)) => error,
            // The future is polled again after its end.
            _ => Error::Runtime(talpf_runtime::Error::ShutDown),
        }
    }
}

/// Returns the future of an operation that waits for its completion, and the action that follows
/// that. `message` is that of a traced get.
pub(super) fn awaited<G: Send + 'static>(
    round: &Arc<RoundState>,
    target: Rank,
    verb: Verb,
    message: Option<u64>,
    guard: Registered<G>,
) -> (Operation<G>, Done) {
    let (operation, completer) = Operation::under_way(round);
    // If a get or an atomic fails, so does its task, whose output is undefined then.
    let event = (verb != Verb::Put).then(PendingEvent::of_current_task).and_then(Result::ok);
    let done = completer.into_done(guard, event);
    let Some(message) = message else {
        return (operation, done);
    };
    let round = Arc::clone(round);
    let traced = move |result: Result<(), Error>| {
        if result.is_ok() {
            round.sender.tracer.end_get(target, message, round.lane, round.number);
        }
        done(result);
    };
    (operation, Box::new(traced))
}

impl<G: Send + 'static> Completer<G> {
    /// Returns the action at the end of an operation, which keeps its memory and registration till
    /// then.
    pub(super) fn into_done(self, guard: Registered<G>, event: Option<PendingEvent>) -> Done {
        Box::new(move |result: Result<(), Error>| {
            let guard = guard.into_guard();
            if let (Err(error), Some(event)) = (&result, event) {
                event.fail(error.to_string());
            }
            self.complete(result.map(|()| guard));
        })
    }
}

impl<G> Completer<G> {
    /// Passes the guard or the error to the waiting side, or drops it if that is detached.
    fn complete(self, result: Result<G, Error>) {
        let mut state = self.0.lock();
        if matches!(*state, UnderWay::Detached) {
            drop(state);
            return drop(result);
        }
        let before = std::mem::replace(&mut *state, UnderWay::Ended(Some(result)));
        drop(state);
        if let UnderWay::Waiting(Some((waker, round))) = before
            && let Err(panic) = foreign::call("a waker", || waker.wake())
        {
            round.sender.fail_foreign("a waker", &panic);
        }
    }
}

impl<G> Unpin for Operation<G> {}

impl<G> Future for Operation<G> {
    type Output = Result<G, Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.guard.is_none() && !self.poll_rest(cx) {
            return Poll::Pending;
        }
        match self.guard.take() {
            Some(guard) => Poll::Ready(Ok(guard)),
            None => Poll::Ready(Err(self.error())),
        }
    }
}

impl<G> Awaited<G> {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<G, Error>> {
        let Awaited { shared, round } = self;
        round.sender.batches.post_all();
        let ended = || matches!(*shared.lock(), UnderWay::Ended(_)).then_some(());
        round.poll_while_spare(ended);
        // Wakers may be code of the program, which runs under no lock: neither clones nor drops.
        let waits = Some((cx.waker().clone(), Arc::clone(round)));
        let mut state = shared.lock();
        let unused = match &mut *state {
            UnderWay::Ended(result) => return Poll::Ready(taken(result)),
            UnderWay::Waiting(before) => std::mem::replace(before, waits),
            UnderWay::Detached => waits,
        };
        drop(state);
        drop(unused);
        talpf_runtime::note_wait("a put, get or atomic");
        Poll::Pending
    }
}

fn taken<G>(result: &mut Option<Result<G, Error>>) -> Result<G, Error> {
    let polled_again = talpf_runtime::Error::ShutDown;
    result.take().unwrap_or(Err(Error::Runtime(polled_again)))
}

impl<G> Drop for Awaited<G> {
    fn drop(&mut self) {
        let before = std::mem::replace(&mut *self.shared.lock(), UnderWay::Detached);
        drop(before);
    }
}
