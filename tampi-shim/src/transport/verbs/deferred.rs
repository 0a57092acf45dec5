//! Deferred actions: done once all locks are released.
//!
//! Notifying the waiter of an ended operation may run code of tasks, which may start the next
//! operation at once.

use std::mem::ManuallyDrop;
use std::task::Waker;

use smallvec::SmallVec;

use super::transfers::Transfer;
use crate::error::Error;
use crate::foreign::call;
use crate::rank::WorldRank;
use crate::ticket::{Notification, PackedResult, Ticket};

/// Actions deferred until all locks are released. Mostly there is none, or one notification.
///
/// It is emptied by [`DeferredActions::notify_waiters`] and then [`DeferredActions::take`], and
/// never dropped: a drop would check once more for actions that are rare.
#[derive(Default)]
pub(super) struct DeferredActions {
    first: ManuallyDrop<Option<Notification>>,
    others: ManuallyDrop<Option<Box<Others>>>,
}

#[derive(Default)]
struct Others {
    notifications: Vec<Notification>,
    transfers: SmallVec<[(WorldRank, Transfer); 1]>,
    wakers: Vec<Waker>,
    error: Option<Error>,
}

impl DeferredActions {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.is_none()
    }

    /// Ends an operation. Its waiter is notified by [`DeferredActions::notify_waiters`].
    #[inline]
    pub(super) fn end(&mut self, ticket: Ticket, ended: PackedResult) {
        if let Some(notification) = ticket.end(ended) {
            self.add(notification);
        }
    }

    #[cold]
    fn add(&mut self, notification: Notification) {
        match *self.first {
            None => *self.first = Some(notification),
            Some(_) => self.others().notifications.push(notification),
        }
    }

    /// Defers the start of a transfer with `peer`.
    pub(super) fn transfer(&mut self, peer: WorldRank, transfer: Transfer) {
        self.others().transfers.push((peer, transfer));
    }

    /// Defers the wake-up of tasks that probe for messages.
    pub(super) fn wake(&mut self, wakers: &mut Vec<Waker>) {
        if !wakers.is_empty() {
            self.others().wakers.append(wakers);
        }
    }

    /// Defers the failure of the run. The first error counts.
    #[cold]
    pub(super) fn fail(&mut self, error: Error) {
        self.others().error.get_or_insert(error);
    }

    #[inline]
    pub(super) fn note<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        result.map_err(|error| self.fail(error)).ok()
    }

    /// Notifies the waiters of ended operations. To be called without any lock.
    #[inline]
    pub(super) fn notify_waiters(&mut self) {
        if !self.is_empty() {
            self.notify_waiters_cold();
        }
    }

    #[cold]
    fn notify_waiters_cold(&mut self) {
        self.first.take().into_iter().for_each(Notification::deliver);
        if let Some(others) = &mut *self.others {
            others.notifications.drain(..).for_each(Notification::deliver);
            for waker in others.wakers.drain(..) {
                call("a waker", || waker.wake());
            }
        }
    }

    /// Takes the other actions: transfers to start, and an error.
    pub(super) fn take(&mut self) -> (SmallVec<[(WorldRank, Transfer); 1]>, Option<Error>) {
        self.others.take().map(|others| (others.transfers, others.error)).unwrap_or_default()
    }

    fn others(&mut self) -> &mut Others {
        self.others.get_or_insert_default()
    }
}
