//! Waits for a time.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::timers::nanoseconds;
use crate::group::GroupInner;
use crate::record::note_wait;

/// Reason of a wait for a time: the task goes on by itself.
pub(crate) const A_TIME: &str = "a time";

/// Returns a future that completes `period` from now, or a little later: when a worker of the
/// group's set finds that. It suspends even if that is 0.
pub(crate) fn wait_for(
    group: Arc<GroupInner>,
    period: Duration,
) -> impl Future<Output = ()> + Send + use<> {
    let due_ns = group.shared.clock.now_ns().saturating_add(nanoseconds(period));
    let mut added = false;
    poll_fn(move |cx| {
        if added && group.shared.clock.now_ns() >= due_ns {
            return Poll::Ready(());
        }
        if !std::mem::replace(&mut added, true) {
            group.set.timers.add(due_ns, cx.waker().clone());
            group.set.wake_one();
        }
        note_wait(A_TIME);
        Poll::Pending
    })
}
