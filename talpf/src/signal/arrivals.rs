//! The signals that arrive at an end.

use std::any::Any;
use std::fmt::Write;
use std::ops::Deref;
use std::sync::Arc;
use std::task::{Context, Poll};

use crossbeam_utils::CachePadded;

use super::value::Signal;
use super::word::{Awaited, End, Signals};
use crate::error::Error;
use crate::notification::{Listener, Notification, Notifications};
use crate::numbers::Rank;
use crate::waiting_task::WaitingTask;

/// An end that signals arrive at.
pub(crate) trait Receiving: Send + Sync + 'static {
    /// Returns the words for a signal that arrives here.
    fn signal_name(&self) -> String;
    /// Describes the wait for the signal that follows the first `count` ones of a signaller, or for
    /// one of any.
    fn describe_wait(&self, signaller: Option<(Rank, u64)>) -> String;
}

/// The part of an end that its signallers know: those of this process, and the notifications of the
/// others.
pub(crate) struct Arrivals<E> {
    pub(crate) end: E,
    pub(crate) notifications: Notifications,
    /// By rank.
    signallers: Vec<Rank>,
    /// On cache lines of their own, as each signaller changes its own.
    signals: Vec<CachePadded<Signals>>,
    awaited: Awaited,
    task: WaitingTask,
}

impl<E: Receiving> Arrivals<E> {
    /// Makes what signals of `signallers`, which are in order, arrive at.
    pub(crate) fn new(notifications: &Notifications, signallers: &[Rank], end: E) -> Arc<Self> {
        let signals = signallers.iter().map(|_| CachePadded::default()).collect();
        let (notifications, signallers) = (notifications.clone(), signallers.to_vec());
        let (awaited, task) = (Awaited::nobody(), WaitingTask::default());
        Arc::new(Arrivals { end, notifications, signallers, signals, awaited, task })
    }

    /// Returns those of an end of `rank` with its private id, and the place of this rank among its
    /// signallers, if signals need not pass the device.
    pub(super) fn of_peer(
        notifications: &Notifications,
        rank: Rank,
        id: u32,
    ) -> Option<(Arc<Self>, usize)> {
        let listener: Arc<dyn Any + Send + Sync> = notifications.direct(rank, id)?;
        let arrivals = listener.downcast::<Self>().ok()?;
        let place = arrivals.place_of(notifications.rank())?;
        Some((arrivals, place))
    }

    /// Returns the signaller at a place, with what it has signalled; `None` behind the last one.
    #[inline]
    pub(crate) fn at(&self, place: usize) -> Option<(Rank, &Signals)> {
        Some((*self.signallers.get(place)?, &**self.signals.get(place)?))
    }

    /// Takes in a signal that the signaller at `place` has sent. Returns `true` if the end is to be
    /// woken.
    fn take_in(&self, place: usize, signal: Signal) -> bool {
        let signals = &self.signals[place];
        if signals.ended().is_some() {
            // Overtaken by the last one, which has the number of all.
            return false;
        }
        match signal {
            Signal::Count(count) => {
                self.awaited.signal(place, signals, count.from(signals.count()))
            }
            Signal::Closed(count) => {
                let wakes = self.awaited.signal(place, signals, count.from(signals.count()));
                self.awaited.end(place, signals, End::Closed) || wakes
            }
            Signal::Lost => self.awaited.end(place, signals, End::Lost),
        }
    }

    /// Takes in a signal of the signaller at `place`, which is in this process.
    #[inline]
    pub(super) fn signal_directly(&self, place: usize, count: u64) {
        if self.awaited.signal(place, &self.signals[place], count) {
            self.follow_up();
        }
    }

    /// Takes in the end of the signaller at `place`, which is in this process.
    pub(super) fn end_directly(&self, place: usize, end: End) {
        if self.awaited.end(place, &self.signals[place], end) {
            self.follow_up();
        }
    }

    fn place_of(&self, signaller: Rank) -> Option<usize> {
        self.signallers.binary_search(&signaller).ok()
    }

    /// Waits until a signal of the signaller at `place`, or of any, has made `has_come` true. `check`
    /// finds that none can come any more; `what` is for reports.
    ///
    /// **Errors**: that of `check`.
    pub(crate) fn poll(
        &self,
        cx: &Context<'_>,
        (place, what): (Option<usize>, &'static str),
        has_come: impl Fn() -> bool,
        check: impl Fn() -> Result<(), Error>,
    ) -> Poll<Result<(), Error>> {
        let round = self.notifications.round();
        round.sender.batches.post_all();
        check()?;
        let come = || has_come().then_some(());
        if come().is_none() && round.poll_while_spare(come).is_none() {
            self.task.announce(cx);
            self.awaited.announce(place);
            if !has_come() {
                // The run may have failed before the announcement, too.
                check()?;
                talpf_runtime::note_wait(what);
                return Poll::Pending;
            }
        }
        self.awaited.clear();
        Poll::Ready(Ok(()))
    }
}

impl<E: Receiving> Listener for Arrivals<E> {
    fn take(&self, notification: Notification) -> bool {
        let Notification { source: rank, value, .. } = notification;
        let signal = self.place_of(rank).zip(Signal::from_value(value));
        signal.map(|(place, signal)| self.take_in(place, signal)).unwrap_or_else(|| {
            let what = format!("the value {value:#x} as {}", self.end.signal_name());
            let sender = &self.notifications.round().sender;
            sender.fail_soon(Error::BadControlMessage { rank, what });
            false
        })
    }

    fn follow_up(&self) {
        self.task.wake(&self.notifications.round().sender);
    }

    fn describe(&self, text: &mut String) {
        if self.task.is_announced() {
            let awaited = self.at(self.awaited.place());
            let awaited = awaited.map(|(signaller, signals)| (signaller, signals.count()));
            let (rank, wait) = (self.notifications.rank(), self.end.describe_wait(awaited));
            let _ = writeln!(text, "  {rank}: waits for {wait}");
        }
    }
}

/// Arrivals that are the listener of a private id until this is dropped. What comes later is for
/// nobody.
pub(crate) struct Listening<E: Receiving> {
    arrivals: Arc<Arrivals<E>>,
    id: u32,
}

impl<E: Receiving> Listening<E> {
    /// Makes `arrivals` the listener of the private id `id`, which was added here.
    pub(crate) fn new(arrivals: Arc<Arrivals<E>>, id: u32) -> Self {
        arrivals.notifications.set_listener(id, Arc::<Arrivals<E>>::clone(&arrivals));
        Listening { arrivals, id }
    }
}

impl<E: Receiving> Deref for Listening<E> {
    type Target = Arrivals<E>;

    #[inline]
    fn deref(&self) -> &Arrivals<E> {
        &self.arrivals
    }
}

impl<E: Receiving> Drop for Listening<E> {
    fn drop(&mut self) {
        self.arrivals.notifications.remove_listener(self.id);
    }
}
