//! What a body gets for an operation it issues.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::error::Error;
use crate::round::RoundState;

/// An operation under way.
///
/// **Completion**: await it for *local* completion, which returns the guard: the region may be
/// reused, and after a get or an atomic it holds the result. Or let it go: the guard, and with it
/// the task, is held until then all the same.
#[must_use = "await it for the guard, or say `let _ =` to let it go"]
pub struct Operation<G> {
    state: State<G>,
    /// The round it belongs to, while it is under way.
    round: Option<Arc<RoundState>>,
}

enum State<G> {
    Ended(Option<Result<G, Error>>),
    UnderWay(Arc<Mutex<UnderWay<G>>>),
}

enum UnderWay<G> {
    Waiting(Option<Waker>),
    Ended(Option<Result<G, Error>>),
    LetGo,
}

/// The operation's side.
pub(super) struct Completer<G>(Arc<Mutex<UnderWay<G>>>);

impl<G> Operation<G> {
    pub(super) fn ended(result: Result<G, Error>) -> Self {
        Operation { state: State::Ended(Some(result)), round: None }
    }

    pub(super) fn under_way(round: &Arc<RoundState>) -> (Self, Completer<G>) {
        let shared = Arc::new(Mutex::new(UnderWay::Waiting(None)));
        let state = State::UnderWay(Arc::clone(&shared));
        let operation = Operation { state, round: Some(Arc::clone(round)) };
        (operation, Completer(shared))
    }
}

impl<G> Completer<G> {
    /// Returns the guard, or the error. Nobody waits for it: then it drops here.
    pub(super) fn complete(self, result: Result<G, Error>) {
        let mut state = self.0.lock();
        if matches!(*state, UnderWay::LetGo) {
            drop(state);
            return drop(result);
        }
        let before = std::mem::replace(&mut *state, UnderWay::Ended(Some(result)));
        drop(state);
        if let UnderWay::Waiting(Some(waker)) = before {
            waker.wake();
        }
    }
}

impl<G> Unpin for Operation<G> {}

impl<G> Future for Operation<G> {
    type Output = Result<G, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Whoever waits looks first: often the completion is there already.
        if let Some(round) = &self.round {
            round.world.rank(round.rank).look(&round.world);
        }
        match &mut self.state {
            State::Ended(result) => Poll::Ready(taken(result)),
            State::UnderWay(shared) => match &mut *shared.lock() {
                UnderWay::Ended(result) => Poll::Ready(taken(result)),
                UnderWay::Waiting(waker) => {
                    *waker = Some(cx.waker().clone());
                    talpf_runtime::note_wait("a put, get or atomic");
                    Poll::Pending
                }
                UnderWay::LetGo => Poll::Pending,
            },
        }
    }
}

fn taken<G>(result: &mut Option<Result<G, Error>>) -> Result<G, Error> {
    let polled_again = talpf_runtime::Error::ShutDown;
    result.take().unwrap_or(Err(Error::Runtime(polled_again)))
}

impl<G> Drop for Operation<G> {
    fn drop(&mut self) {
        if let State::UnderWay(shared) = &self.state {
            let mut state = shared.lock();
            let before = std::mem::replace(&mut *state, UnderWay::LetGo);
            drop(state);
            drop(before);
        }
    }
}
