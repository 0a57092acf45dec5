//! Puts of the same elements to several ranks.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::Notifications;
use crate::error::Error;
use crate::operation::{Operation, Source};
use crate::slot::RemoteRegion;

/// Puts under way of the same elements to several ranks:
/// [`Notifications::multicast`](crate::Notifications::multicast).
///
/// **Completion**: an `await` ends with *local* completion of all puts and returns the guard. Dropped,
/// the puts go on.
#[must_use = "await it for the guard, or drop it by `let _ =`"]
pub struct Multicast<G: Source> {
    /// The guard, which operations under way have, too.
    from: Option<Arc<G>>,
    under_way: Vec<Operation<Arc<G>>>,
    failed: Option<Error>,
}

impl<G: Source + Sync> Multicast<G> {
    pub(super) fn new<'r>(
        notifications: &Notifications,
        from: G,
        to: impl IntoIterator<Item = RemoteRegion<'r, G::Element>>,
        (id, value): (u32, u32),
    ) -> Self {
        let from = Arc::new(from);
        let put = |to| notifications.put(Arc::clone(&from), to, id, value);
        let under_way = to.into_iter().map(put).collect();
        Multicast { from: Some(from), under_way, failed: None }
    }
}

impl<G: Source> Unpin for Multicast<G> {}

impl<G: Source + Sync> Future for Multicast<G> {
    type Output = Result<G, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Multicast { from, under_way, failed } = &mut *self;
        under_way.retain_mut(|operation| match Pin::new(operation).poll(cx) {
            Poll::Ready(Ok(_)) => false,
            Poll::Ready(Err(error)) => {
                failed.get_or_insert(error);
                false
            }
            Poll::Pending => true,
        });
        if !under_way.is_empty() {
            return Poll::Pending;
        }
        let guard = from.take().and_then(Arc::into_inner);
        // The future is polled again after its end, if it has none.
        let polled_again = Error::Runtime(talpf_runtime::Error::ShutDown);
        Poll::Ready(match failed.take() {
            Some(error) => Err(error),
            None => guard.ok_or(polled_again),
        })
    }
}

impl<G: Source> fmt::Debug for Multicast<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Multicast ({} puts under way)", self.under_way.len())
    }
}
