//! What is to be done once locks are released.
//!
//! What waits for an operation that has ended may be the code of tasks, which may start the next
//! operation on the spot.

use std::mem::ManuallyDrop;
use std::task::Waker;

use smallvec::SmallVec;

use super::transfers::Transfer;
use crate::error::Error;
use crate::foreign::call;
use crate::rank::WorldRank;
use crate::ticket::{Ended, Notification, Ticket};

/// See the module text. Mostly there is nothing, or one operation that somebody waits for.
///
/// It is emptied, by [`Aftermath::take`] after [`Aftermath::complete`], and not dropped: dropping
/// would look once more for what is hardly ever there.
#[derive(Default)]
pub(super) struct Aftermath {
    first: ManuallyDrop<Option<Notification>>,
    others: ManuallyDrop<Option<Box<Others>>>,
}

#[derive(Default)]
struct Others {
    next: Vec<Notification>,
    transfers: SmallVec<[(WorldRank, Transfer); 1]>,
    wakers: Vec<Waker>,
    error: Option<Error>,
}

impl Aftermath {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.is_none()
    }

    /// Ends an operation. Whoever waits for it hears of it in [`Aftermath::complete`].
    #[inline]
    pub(super) fn end(&mut self, ticket: Ticket, ended: Ended) {
        if let Some(next) = ticket.end(ended) {
            self.add(next);
        }
    }

    #[cold]
    fn add(&mut self, next: Notification) {
        match *self.first {
            None => *self.first = Some(next),
            Some(_) => self.others().next.push(next),
        }
    }

    /// A transfer is to be started, with this peer at the other end.
    pub(super) fn transfer(&mut self, peer: WorldRank, transfer: Transfer) {
        self.others().transfers.push((peer, transfer));
    }

    /// Those who wait for messages are to be woken.
    pub(super) fn wake(&mut self, wakers: &mut Vec<Waker>) {
        if !wakers.is_empty() {
            self.others().wakers.append(wakers);
        }
    }

    /// Notes what went wrong. The first counts.
    #[cold]
    pub(super) fn fail(&mut self, error: Error) {
        self.others().error.get_or_insert(error);
    }

    #[inline]
    pub(super) fn note<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        result.map_err(|error| self.fail(error)).ok()
    }

    /// Tells who waits for what has ended. To be called without any lock.
    #[inline]
    pub(super) fn complete(&mut self) {
        if !self.is_empty() {
            self.tell();
        }
    }

    #[cold]
    fn tell(&mut self) {
        self.first.take().into_iter().for_each(Notification::deliver);
        if let Some(others) = &mut *self.others {
            others.next.drain(..).for_each(Notification::deliver);
            for waker in others.wakers.drain(..) {
                call("a waker", || waker.wake());
            }
        }
    }

    /// What else is to be done: the transfers and the error.
    pub(super) fn take(&mut self) -> (SmallVec<[(WorldRank, Transfer); 1]>, Option<Error>) {
        self.others.take().map(|others| (others.transfers, others.error)).unwrap_or_default()
    }

    fn others(&mut self) -> &mut Others {
        self.others.get_or_insert_default()
    }
}
