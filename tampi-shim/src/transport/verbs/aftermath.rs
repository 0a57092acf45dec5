//! What is to be done once locks are released.
//!
//! What waits for an operation that has ended may be the code of tasks, which may start the next
//! operation on the spot.

use smallvec::SmallVec;

use super::transfers::Transfer;
use crate::error::Error;
use crate::rank::WorldRank;
use crate::status::Status;
use crate::ticket::{Next, Ticket};

/// See the module text.
#[derive(Default)]
pub(super) struct Aftermath {
    next: SmallVec<[Next; 4]>,
    /// Transfers to start, with the peer at the other end.
    pub(super) transfers: SmallVec<[(WorldRank, Transfer); 1]>,
    pub(super) wakers: Vec<std::task::Waker>,
    /// The first thing that went wrong.
    pub(super) error: Option<Error>,
}

impl Aftermath {
    /// Ends an operation. Whoever waits for it hears of it in [`Aftermath::complete`].
    #[inline]
    pub(super) fn end(&mut self, ticket: Ticket, outcome: Result<Status, Error>) {
        if let Some(next) = ticket.end(outcome) {
            self.next.push(next);
        }
    }

    #[inline]
    pub(super) fn note<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        result.map_err(|error| self.error.get_or_insert(error)).ok()
    }

    /// Tells who waits for what has ended. To be called without any lock.
    #[inline]
    pub(super) fn complete(&mut self) {
        if !self.next.is_empty() || !self.wakers.is_empty() {
            self.tell();
        }
    }

    #[cold]
    fn tell(&mut self) {
        self.next.drain(..).for_each(Next::run);
        self.wakers.drain(..).for_each(std::task::Waker::wake);
    }
}
