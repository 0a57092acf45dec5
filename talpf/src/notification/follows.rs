//! Deferred actions of a table of notifications, once its lock is released.

use smallvec::SmallVec;

use super::Notification;
use crate::error::Error;
use crate::numbers::{ArrivalNumber, Rank};
use crate::window::Parked;

/// The end of a wait, called once and under no lock. Its drop without a call gives the wait up.
pub(crate) type Completion = Box<dyn FnOnce(Result<Notification, Error>) + Send>;

/// Deferred actions of a table. Usually none, or the end of one wait.
#[derive(Default)]
#[must_use = "waits have to end, and operations that may land have to be posted"]
pub(crate) struct Follows {
    /// Waits that end.
    pub(crate) ended: SmallVec<[Ended; 1]>,
    rest: Option<Box<Lists>>,
}

#[derive(Default)]
pub(crate) struct Lists {
    /// Operations that may land, to be posted.
    pub(crate) admitted: SmallVec<[Admitted; 1]>,
    /// Operations that no inbox takes.
    pub(crate) refused: Vec<Box<dyn Parked>>,
    /// Sources that have credit again.
    pub(crate) sources: SmallVec<[Rank; 2]>,
}

/// A wait that ends.
pub(crate) struct Ended {
    pub(super) completion: Completion,
    pub(super) result: Result<Notification, Error>,
}

/// An operation that may land, on its way out of the table.
pub(crate) struct Admitted {
    pub(super) number: ArrivalNumber,
    pub(super) source: Rank,
    pub(crate) operation: Box<dyn Parked>,
}

impl Ended {
    /// Ends the wait.
    pub(crate) fn complete(self) {
        (self.completion)(self.result);
    }
}

impl Follows {
    #[inline]
    pub(crate) fn is_nothing(&self) -> bool {
        self.ended.is_empty() && self.rest.is_none()
    }

    pub(super) fn lists(&mut self) -> &mut Lists {
        self.rest.get_or_insert_default()
    }

    /// Takes the actions beside the ends of waits.
    pub(crate) fn take_lists(&mut self) -> Lists {
        self.rest.take().map(|lists| *lists).unwrap_or_default()
    }

    pub(super) fn end(&mut self, completion: Completion, result: Result<Notification, Error>) {
        self.ended.push(Ended { completion, result });
    }
}
