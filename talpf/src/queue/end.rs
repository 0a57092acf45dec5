//! The part that both ends of a queue have in common.

use std::sync::Arc;

use bytemuck::Pod;

use super::counts::OutOfRange;
use super::ring::Rings;
use crate::error::{Error, QueueError};
use crate::notification::Notifications;
use crate::numbers::Rank;
use crate::registration::Registration;
use crate::signal::Receiving;

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

    /// Checks that this rank has not failed.
    ///
    /// **Errors**: that of the rank.
    pub(super) fn check_run(&self) -> Result<(), Error> {
        self.notifications.round().sender.error().map_or(Ok(()), |error| Err(self.of_run(error)))
    }

    /// Checks that no rank of this process has failed, which may be why the other end is gone.
    ///
    /// **Errors**: that of this rank.
    pub(super) fn check_ranks(&self) -> Result<(), Error> {
        let sender = &self.notifications.round().sender;
        sender.run_failure.known(self.rank()).map_or(Ok(()), |error| Err(self.of_run(error)))
    }

    fn of_run(&self, error: Error) -> Error {
        match error {
            Error::RunEnded => Error::RunEnded,
            error => self.failed(error.to_string()),
        }
    }

    /// Returns the error of a queue that cannot go on.
    #[cold]
    pub(super) fn failed(&self, reason: String) -> Error {
        Error::Queue(QueueError::Failed { rank: self.rank(), receiver: self.receiver, reason })
    }

    /// Fails the run, as the other end cannot have sent this count.
    #[cold]
    pub(super) fn out_of_range(&self, source: Rank, range: OutOfRange) -> Error {
        let (OutOfRange { items, limit }, receiver) = (range, self.receiver);
        let what =
            format!("a count of {items} items in the queue of {receiver}, the limit is {limit}");
        let error = Error::BadControlMessage { rank: source, what };
        self.notifications.round().sender.fail(&error);
        error
    }
}

/// The items of a queue, as they arrive at its receiver in `rings`.
pub(super) struct Items<T> {
    pub(super) receiver: Rank,
    pub(super) rings: Rings<T>,
}

/// The credits of a sender, as they arrive there.
pub(super) struct Credits {
    pub(super) receiver: Rank,
}

impl<T: Pod + Send + Sync> Receiving for Items<T> {
    fn signal_name(&self) -> String {
        format!("an item in the queue of {}", self.receiver)
    }

    fn describe_wait(&self, _sender: Option<(Rank, u64)>) -> String {
        "an item of its queue".to_owned()
    }
}

impl Receiving for Credits {
    fn signal_name(&self) -> String {
        format!("a credit in the queue of {}", self.receiver)
    }

    fn describe_wait(&self, _receiver: Option<(Rank, u64)>) -> String {
        format!("room in the queue of {}", self.receiver)
    }
}
