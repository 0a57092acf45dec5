//! The result of a task.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use talpf_primitives::Mutex;

use super::failure;
use crate::error::Error;
use crate::group::GroupInner;
use crate::record::note_wait;

/// A future of the value that the body of a task returns.
///
/// **Completion**: the body has returned. Guards that it has moved out may be alive, and successors
/// may not have run. Dropping the handle does not stop the task.
#[must_use = "awaiting the handle gives the result"]
pub struct JoinHandle<R> {
    joint: Arc<Joint<R>>,
}

/// The state that a handle shares with its task.
struct Joint<R> {
    state: Mutex<State<R>>,
    group: Arc<GroupInner>,
}

enum State<R> {
    Running(Option<Waker>),
    Ended(Result<R, Error>),
    Taken,
}

/// The task's side of a handle.
pub(super) struct Promise<R: Send + 'static> {
    joint: Option<Arc<Joint<R>>>,
}

pub(super) fn promise<R: Send + 'static>(group: &Arc<GroupInner>) -> (Promise<R>, JoinHandle<R>) {
    let (state, group) = (Mutex::new(State::Running(None)), Arc::clone(group));
    let joint = Arc::new(Joint { state, group });
    (Promise { joint: Some(Arc::clone(&joint)) }, JoinHandle { joint })
}

impl<R: Send + 'static> Promise<R> {
    pub(super) fn keep(mut self, value: R) {
        if let Some(joint) = self.joint.take() {
            joint.settle(Ok(value));
        }
    }
}

impl<R> Joint<R> {
    fn settle(&self, result: Result<R, Error>) {
        let before = std::mem::replace(&mut *self.state.lock(), State::Ended(result));
        if let State::Running(Some(waker)) = before {
            self.group.wake(waker);
        }
    }
}

/// Without a value, the task failed or was kept from running.
impl<R: Send + 'static> Drop for Promise<R> {
    fn drop(&mut self) {
        if let Some(joint) = self.joint.take() {
            if failure::is_unwinding() {
                failure::defer_release(move || joint.settle(Err(reason())));
            } else {
                joint.settle(Err(reason()));
            }
        }
    }
}

fn reason() -> Error {
    failure::of_current_task().map_or(Error::ShutDown, Error::of_task)
}

impl<R> Future for JoinHandle<R> {
    type Output = Result<R, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Wakers are code of the program: none is cloned or dropped under the lock.
        let new = cx.waker().clone();
        let mut state = self.joint.state.lock();
        match &mut *state {
            State::Running(waker) => {
                let old = waker.replace(new);
                drop(state);
                drop(old);
                if let Some(report) = self.joint.group.shared.hang.report() {
                    return Poll::Ready(Err(Error::Hang(report)));
                }
                note_wait("the end of a task");
                Poll::Pending
            }
            State::Ended(_) => match std::mem::replace(&mut *state, State::Taken) {
                State::Ended(result) => Poll::Ready(result),
                State::Running(_) | State::Taken => Poll::Ready(Err(Error::ShutDown)),
            },
            State::Taken => Poll::Ready(Err(Error::ShutDown)),
        }
    }
}

impl<R> fmt::Debug for JoinHandle<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &*self.joint.state.lock() {
            State::Running(_) => "running",
            State::Ended(Ok(_)) => "ended",
            State::Ended(Err(_)) => "failed",
            State::Taken => "taken",
        };
        write!(f, "JoinHandle ({state})")
    }
}
