//! The signals that arrive at a waiter.

use std::fmt::Write;
use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::phase::{Awaited, End, Signals};
use crate::error::Error;
use crate::notification::{Listener, Notification, Notifications};
use crate::numbers::Rank;
use crate::signal::{Count, Signal};
use crate::waiting_task::WaitingTask;

/// The part of a waiter that its signallers know: those of this process, and the notifications of the
/// others.
pub(super) struct Arrivals {
    pub(super) notifications: Notifications,
    /// By rank.
    signallers: Vec<Rank>,
    /// On cache lines of their own, as each signaller changes its own.
    signals: Vec<CachePadded<Signals>>,
    pub(super) awaited: Awaited,
    pub(super) task: WaitingTask,
}

impl Arrivals {
    pub(super) fn new(notifications: &Notifications, signallers: &[Rank]) -> Arc<Self> {
        let signals = signallers.iter().map(|_| CachePadded::default()).collect();
        let (notifications, signallers) = (notifications.clone(), signallers.to_vec());
        let (awaited, task) = (Awaited::nobody(), WaitingTask::default());
        Arc::new(Arrivals { notifications, signallers, signals, awaited, task })
    }

    /// Returns the signaller at a place, with what it has signalled; `None` behind the last one.
    #[inline]
    pub(super) fn at(&self, place: usize) -> Option<(Rank, &Signals)> {
        Some((*self.signallers.get(place)?, &**self.signals.get(place)?))
    }

    /// Takes in a signal that the signaller at `place` has sent. Returns `true` if the waiter is to be
    /// woken.
    fn take_in(&self, place: usize, signal: Signal) -> bool {
        let signals = &self.signals[place];
        if signals.ended().is_some() {
            // Overtaken by the last one, which has the number of all.
            return false;
        }
        let phases = signals.phases();
        let later = |count: Count| match count.ahead_of(phases) {
            ahead if ahead > Count::MOST / 2 => phases,
            ahead => phases + u64::from(ahead),
        };
        match signal {
            Signal::Count(count) => self.awaited.signal(place, signals, later(count)),
            Signal::Closed(count) => {
                let wakes = self.awaited.signal(place, signals, later(count));
                self.awaited.end(place, signals, End::Closed) || wakes
            }
            Signal::Lost => self.awaited.end(place, signals, End::Lost),
        }
    }

    /// Takes in a signal of the signaller at `place`, which is in this process.
    #[inline]
    pub(super) fn signal_directly(&self, place: usize, phases: u64) {
        if self.awaited.signal(place, &self.signals[place], phases) {
            self.follow_up();
        }
    }

    /// Takes in the end of the signaller at `place`, which is in this process.
    pub(super) fn end_directly(&self, place: usize, end: End) {
        if self.awaited.end(place, &self.signals[place], end) {
            self.follow_up();
        }
    }

    pub(super) fn place_of(&self, signaller: Rank) -> Option<usize> {
        self.signallers.binary_search(&signaller).ok()
    }
}

impl Listener for Arrivals {
    fn take(&self, notification: Notification) -> bool {
        let Notification { source: rank, value, .. } = notification;
        let signal = self.place_of(rank).zip(Signal::from_value(value));
        signal.map(|(place, signal)| self.take_in(place, signal)).unwrap_or_else(|| {
            let what = format!("the value {value:#x} as the signal of a phaser");
            let sender = &self.notifications.round().sender;
            sender.fail_soon(Error::BadControlMessage { rank, what });
            false
        })
    }

    fn follow_up(&self) {
        self.task.wake(&self.notifications.round().sender);
    }

    fn describe(&self, text: &mut String) {
        if self.task.is_announced()
            && let Some((signaller, signals)) = self.at(self.awaited.place())
        {
            let (rank, phase) = (self.notifications.rank(), signals.phases());
            let _ = writeln!(text, "  {rank}: waits for {signaller} to signal phase {phase}");
        }
    }
}
