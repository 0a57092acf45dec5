//! The signalling end of a phaser.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::thread;

use super::arrivals::Arrivals;
use super::phase::End;
use crate::error::{EndError, Error};
use crate::notification::Notifications;
use crate::numbers::Rank;
use crate::operation::{Operation, notify};
use crate::signal::{Count, Signal};

/// The signalling end of a [`Phaser`](crate::Phaser).
///
/// A signaller that is dropped will not signal any more: waiters of a later phase fail
/// ([`EndError::SignallerDropped`]), as do those of one that is lost in a panic
/// ([`EndError::Failed`]).
pub struct PhaserSignaller {
    notifications: Notifications,
    /// Waiters of this process, with the place of this rank at each.
    direct: Vec<(Arc<Arrivals>, usize)>,
    /// The other waiters, with the id of signals at each.
    others: Vec<(Rank, u32)>,
    /// Number of phases that were signalled.
    phases: u64,
}

impl PhaserSignaller {
    pub(super) fn new(
        notifications: &Notifications,
        direct: Vec<(Arc<Arrivals>, usize)>,
        others: Vec<(Rank, u32)>,
    ) -> Self {
        PhaserSignaller { notifications: notifications.clone(), direct, others, phases: 0 }
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
            for (arrivals, place) in &self.direct {
                arrivals.signal_directly(*place, self.phases);
            }
            operations = self.send(Signal::Count(Count::of(self.phases)));
        }
        async move {
            failed.map_or(Ok(()), Err)?;
            for operation in operations {
                operation.await?;
            }
            Ok(())
        }
    }

    /// Sends a signal to the waiters that are not of this process.
    fn send(&self, signal: Signal) -> Vec<Operation<()>> {
        let (round, value) = (self.notifications.round(), signal.to_value());
        self.others.iter().map(|(rank, id)| notify(round, *rank, (*id, value))).collect()
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
        let (end, signal) = match thread::panicking() {
            true => (End::Lost, Signal::Lost),
            false => (End::Closed, Signal::Closed(Count::of(self.phases))),
        };
        for (arrivals, place) in &self.direct {
            arrivals.end_directly(*place, end);
        }
        drop(self.send(signal));
    }
}

impl fmt::Debug for PhaserSignaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PhaserSignaller of {} (phase {})", self.notifications.rank(), self.phases)
    }
}
