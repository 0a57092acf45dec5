//! The part that both ends of a queue have in common.

use std::sync::Arc;

use super::counts::OutOfRange;
use crate::error::{Error, QueueError};
use crate::notification::{Notification, Notifications};
use crate::numbers::Rank;
use crate::operation::{Operation, notify};
use crate::registration::Registration;
use crate::signal::Signal;

/// An end of the queue of `receiver`.
#[derive(Clone)]
pub(super) struct End {
    pub(super) receiver: Rank,
    pub(super) notifications: Notifications,
    pub(super) registration: Arc<Registration>,
}

impl End {
    pub(super) fn rank(&self) -> Rank {
        self.notifications.rank()
    }

    /// Sends a signal to the other end.
    pub(super) fn signal(&self, rank: Rank, id: u32, signal: Signal) -> Operation<()> {
        notify(self.notifications.round(), rank, (id, signal.to_value()))
    }

    /// Checks that this rank has not failed.
    ///
    /// **Errors**: that of the rank.
    pub(super) fn check_run(&self) -> Result<(), Error> {
        match self.notifications.round().sender.error() {
            Some(Error::RunEnded) => Err(Error::RunEnded),
            Some(error) => Err(self.failed(error.to_string())),
            None => Ok(()),
        }
    }

    /// Returns the error of a queue that cannot go on.
    #[cold]
    pub(super) fn failed(&self, reason: String) -> Error {
        Error::Queue(QueueError::Failed { rank: self.rank(), receiver: self.receiver, reason })
    }

    /// Returns the error of a wait for the other end.
    #[cold]
    pub(super) fn not_notified(&self, error: Error) -> Error {
        match error {
            Error::NotNotified { reason, .. } => self.failed(reason),
            error => error,
        }
    }

    /// Fails the run, as the other end cannot have sent this value.
    #[cold]
    pub(super) fn bad_value(&self, Notification { source, value, .. }: Notification) -> Error {
        self.malformed(source, format!("the value {value:#x} in the queue of {}", self.receiver))
    }

    /// Fails the run, as the other end cannot have sent this count.
    #[cold]
    pub(super) fn out_of_range(&self, source: Rank, range: OutOfRange) -> Error {
        let (OutOfRange { items, limit }, receiver) = (range, self.receiver);
        let what =
            format!("a count of {items} items in the queue of {receiver}, the limit is {limit}");
        self.malformed(source, what)
    }

    fn malformed(&self, rank: Rank, what: String) -> Error {
        let error = Error::BadControlMessage { rank, what };
        self.notifications.round().sender.fail(&error);
        error
    }
}
