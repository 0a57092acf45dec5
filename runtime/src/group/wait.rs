//! Waiting for the tasks of a group.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::GroupInner;
use crate::error::Error;
use crate::task::note_wait;

impl GroupInner {
    /// Waits until every task is complete, mains and services too.
    pub(crate) async fn finish(self: Arc<Self>) -> Result<(), Error> {
        std::future::poll_fn(|cx| {
            self.wake_at_completion(cx.waker());
            if self.is_finished() {
                return Poll::Ready(());
            }
            note_wait("all tasks of a group");
            Poll::Pending
        })
        .await;
        self.take_failure()
    }
}

/// The future of [`Group::wait`](super::Group::wait).
#[must_use = "a future waits when it is awaited"]
pub struct Wait {
    pub(super) inner: Arc<GroupInner>,
    pub(super) registered: bool,
}

impl Future for Wait {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.registered || !self.inner.is_quiet() {
            if let Some(report) = self.inner.shared.hang.report() {
                return Poll::Ready(Err(Error::Hang(report)));
            }
            self.inner.wake_at_completion(cx.waker());
            self.registered = true;
        }
        if self.inner.is_quiet() {
            return Poll::Ready(self.inner.take_failure());
        }
        note_wait("its group's tasks");
        Poll::Pending
    }
}
