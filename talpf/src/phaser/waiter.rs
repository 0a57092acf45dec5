//! The waiting end of a phaser.

use std::fmt;
use std::future::{Future, poll_fn};
use std::task::{Context, Poll, ready};

use crate::error::{EndError, Error};
use crate::numbers::Rank;
use crate::signal::{End, Listening, Receiving};

const NAME: &str = "waiter of a phaser";

/// The phases of a phaser, as they arrive at a waiter.
pub(super) struct Phases;

impl Receiving for Phases {
    fn signal_name(&self) -> String {
        "the signal of a phaser".to_owned()
    }

    fn describe_wait(&self, signaller: Option<(Rank, u64)>) -> String {
        let of = |(signaller, phase)| format!("{signaller} to signal phase {phase}");
        signaller.map_or_else(|| "a phase of a phaser".to_owned(), of)
    }
}

/// A waiting end of a [`Phaser`](crate::Phaser).
pub struct PhaserWaiter {
    arrivals: Listening<Phases>,
    /// Number of the phase to wait for.
    phase: u64,
    /// Number of signallers, the first ones, that are known to have signalled it.
    place: usize,
}

impl PhaserWaiter {
    pub(super) fn new(arrivals: Listening<Phases>) -> Self {
        PhaserWaiter { arrivals, phase: 0, place: 0 }
    }

    /// Returns the number of phases that were waited for.
    pub fn phases(&self) -> u64 {
        self.phase
    }

    /// Waits until all signallers have signalled the next phase. Returns its number, from 0.
    ///
    /// **Completion**: the k-th wait ends once each of them has signalled k times. If the future is
    /// dropped before, the phase is that of the next wait.
    /// **Errors**: a signaller that was dropped before ([`EndError::SignallerDropped`]) or lost in a
    /// panic; a run that has failed ([`EndError::Failed`]).
    pub fn wait(&mut self) -> impl Future<Output = Result<u64, Error>> {
        poll_fn(|cx| self.poll(cx))
    }

    /// Returns `true` if all signallers have signalled the phase.
    fn has_come(&mut self) -> bool {
        while let Some((_, signals)) = self.arrivals.at(self.place) {
            if signals.count() <= self.phase {
                return false;
            }
            self.place += 1;
        }
        true
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<u64, Error>> {
        while !self.has_come() {
            let (arrivals, place, phase) = (&self.arrivals, self.place, self.phase);
            let has_come = || arrivals.at(place).is_none_or(|(_, signals)| signals.count() > phase);
            let awaited = (Some(place), "a phase of a phaser");
            ready!(arrivals.poll(cx, awaited, has_come, || self.check()))?;
        }
        let phase = self.phase;
        (self.phase, self.place) = (phase + 1, 0);
        Poll::Ready(Ok(phase))
    }

    /// Checks that the signaller whose signal is missing may still send it.
    fn check(&self) -> Result<(), Error> {
        let Some((signaller, signals)) = self.arrivals.at(self.place) else {
            return Ok(());
        };
        let (rank, phase) = (self.arrivals.notifications.rank(), self.phase);
        let error = match signals.ended().filter(|_| signals.count() <= phase) {
            Some(End::Closed) => EndError::SignallerDropped { rank, signaller, phase },
            Some(End::Lost) => {
                let reason = format!("a body of {signaller} that signals has panicked");
                EndError::Failed { rank, end: NAME, reason }
            }
            None => {
                let error = self.arrivals.notifications.round().sender.error();
                let of_run = |error| Err(EndError::of_run(rank, NAME, error));
                return error.map_or(Ok(()), of_run);
            }
        };
        Err(error.into())
    }
}

impl fmt::Debug for PhaserWaiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self.arrivals.notifications.rank();
        write!(f, "PhaserWaiter of {rank} (phase {})", self.phase)
    }
}
