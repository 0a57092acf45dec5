//! Waiting for the tasks of a group.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use talpf_traces::Event;

use super::GroupInner;
use super::closing::are_complete;
use super::tally::Until;
use crate::error::Error;
use crate::record::note_wait;
use crate::scheduler;

/// Waits until every task of all groups is complete, mains and services too.
pub(crate) async fn finish(groups: &[Arc<GroupInner>]) {
    poll_fn(|cx| {
        groups.iter().for_each(|group| group.wake_at_completion(cx.waker()));
        if are_finished(groups) {
            return Poll::Ready(());
        }
        note_wait("all tasks of the runtime");
        Poll::Pending
    })
    .await;
}

/// Returns `true` if every task of all groups is complete, mains and services too.
pub(crate) fn are_finished(groups: &[Arc<GroupInner>]) -> bool {
    are_complete(groups.iter().map(|group| &group.tally))
}

impl GroupInner {
    /// Implements [`Group::room`](super::Group::room).
    pub(super) async fn room(&self) -> Result<(), Error> {
        // The caller may be a task of the group, which counts itself.
        let limit = self.shared.config.throttle.max(2) as u64;
        if self.outstanding() < limit {
            return Ok(());
        }
        self.until(Until::Left(limit / 2), || self.outstanding() <= limit / 2).await
    }

    /// Waits until as many tasks are complete.
    pub(super) async fn until_completed(&self, count: u64) -> Result<(), Error> {
        let are_complete = || self.tally.members_completed() >= count;
        match are_complete() {
            true => Ok(()),
            false => self.until(Until::Completed(count), are_complete).await,
        }
    }

    /// Waits until the counts are such that `goes_on`.
    async fn until(&self, counts: Until, goes_on: impl Fn() -> bool) -> Result<(), Error> {
        let mut registered = false;
        let _throttled = Throttled::new(self);
        poll_fn(|cx| {
            if registered && let Some(report) = self.shared.hang.report() {
                return Poll::Ready(Err(Error::Hang(report)));
            }
            self.tally.add_waiter(cx.waker(), counts);
            registered = true;
            if goes_on() {
                return Poll::Ready(Ok(()));
            }
            note_wait("room in its group");
            Poll::Pending
        })
        .await
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

/// Wait of the program of a group for its tasks to become fewer, which the trace shows.
struct Throttled<'a> {
    group: &'a GroupInner,
}

impl<'a> Throttled<'a> {
    fn new(group: &'a GroupInner) -> Self {
        scheduler::trace(&group.shared, |_| Event::throttle(group.number(), true));
        Self { group }
    }
}

impl Drop for Throttled<'_> {
    fn drop(&mut self) {
        let Self { group } = self;
        scheduler::trace(&group.shared, |_| Event::throttle(group.number(), false));
    }
}
