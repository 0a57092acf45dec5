//! The signalling end of a phaser.

use std::fmt;
use std::future::Future;
use std::thread;

use super::waiter::Phases;
use crate::error::{EndError, Error};
use crate::notification::Notifications;
use crate::signal::{End, Way};

/// The signalling end of a [`Phaser`](crate::Phaser).
///
/// A signaller that is dropped will not signal any more: waiters of a later phase fail
/// ([`EndError::SignallerDropped`]), as do those of one that is lost in a panic
/// ([`EndError::Failed`]).
pub struct PhaserSignaller {
    notifications: Notifications,
    /// The way to each waiter.
    ways: Vec<Way<Phases>>,
    /// Number of phases that were signalled.
    phases: u64,
}

impl PhaserSignaller {
    pub(super) fn new(notifications: &Notifications, ways: Vec<Way<Phases>>) -> Self {
        PhaserSignaller { notifications: notifications.clone(), ways, phases: 0 }
    }

    /// Returns the number of phases that were signalled.
    pub fn phases(&self) -> u64 {
        self.phases
    }

    /// Signals the next phase to all waiters.
    ///
    /// **Completion**: signalled at once, also if the returned future is dropped. That ends when
    /// the signals are posted or parked; a loop that signals and does not wait awaits it, so as not to run
    /// ahead.
    /// **Ordering**: what this body has done before, waiters of the phase in this process see.
    /// Operations of rounds that it has issued may land later.
    /// **Errors**: a run that has failed ([`EndError::Failed`]) or ended.
    /// **Cost**: a store for each waiter in this process, and a message for each other one.
    pub fn signal(&mut self) -> impl Future<Output = Result<(), Error>> + use<> {
        let failed = self.error();
        let mut operations = Vec::new();
        if failed.is_none() {
            self.phases += 1;
            let signal = |way: &Way<Phases>| way.signal(&self.notifications, self.phases);
            operations.extend(self.ways.iter().filter_map(signal));
        }
        async move {
            failed.map_or(Ok(()), Err)?;
            for operation in operations {
                operation.await?;
            }
            Ok(())
        }
    }

    fn error(&self) -> Option<Error> {
        let sender = &self.notifications.round().sender;
        let error = if sender.has_failed() { sender.error() } else { None };
        let rank = self.notifications.rank();
        error.map(|error| EndError::of_run(rank, "signaller of a phaser", error))
    }
}

impl Drop for PhaserSignaller {
    fn drop(&mut self) {
        let end = if thread::panicking() { End::Lost } else { End::Closed };
        let (notifications, last) = (&self.notifications, (self.phases, end));
        self.ways.iter().for_each(|way| drop(way.end(notifications, last)));
    }
}

impl fmt::Debug for PhaserSignaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PhaserSignaller of {} (phase {})", self.notifications.rank(), self.phases)
    }
}
