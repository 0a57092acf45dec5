//! What is to be done once locks are released.
//!
//! Ending an operation may run the code of tasks, which may start the next operation on the spot.

use smallvec::SmallVec;

use super::transfers::Transfer;
use crate::error::Error;
use crate::rank::WorldRank;
use crate::status::Status;
use crate::ticket::Ticket;

/// See the module text.
#[derive(Default)]
pub(super) struct Aftermath {
    ended: SmallVec<[(Ticket, Result<Status, Error>); 8]>,
    /// Transfers to start, with the peer at the other end.
    pub(super) transfers: SmallVec<[(WorldRank, Transfer); 1]>,
    pub(super) wakers: Vec<std::task::Waker>,
    /// The first thing that went wrong.
    pub(super) error: Option<Error>,
}

impl Aftermath {
    #[inline]
    pub(super) fn end(&mut self, ticket: Ticket, outcome: Result<Status, Error>) {
        self.ended.push((ticket, outcome));
    }

    #[inline]
    pub(super) fn note<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        result.map_err(|error| self.error.get_or_insert(error)).ok()
    }

    /// Ends what has ended.
    #[inline]
    pub(super) fn complete(&mut self) {
        self.ended.drain(..).for_each(|(ticket, outcome)| ticket.complete(outcome));
        self.wakers.drain(..).for_each(std::task::Waker::wake);
    }
}
