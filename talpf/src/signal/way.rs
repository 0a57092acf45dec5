//! The ways of signals.

use std::sync::Arc;

use super::arrivals::{Arrivals, Receiving};
use super::value::{Count, Signal};
use super::word::End;
use crate::notification::Notifications;
use crate::numbers::Rank;
use crate::operation::{Operation, notify};

/// The way of the signals of one rank to one end.
pub(crate) enum Way<E> {
    /// To an end of this process, where this rank is the signaller at a place.
    Direct(Arc<Arrivals<E>>, usize),
    /// To an end that the device reaches, as notifications of a private id.
    Device(Rank, u32),
}

impl<E> Clone for Way<E> {
    fn clone(&self) -> Self {
        match self {
            Way::Direct(arrivals, place) => Way::Direct(Arc::clone(arrivals), *place),
            Way::Device(rank, id) => Way::Device(*rank, *id),
        }
    }
}

impl<E: Receiving> Way<E> {
    /// Returns the way to the end of `rank` with a private id, which can take in signals by now.
    pub(crate) fn new(notifications: &Notifications, rank: Rank, id: u32) -> Self {
        match Arrivals::of_peer(notifications, rank, id) {
            Some((arrivals, place)) => Way::Direct(arrivals, place),
            None => Way::Device(rank, id),
        }
    }

    /// Signals that there are `count` in all. Returns the operation that is under way.
    #[inline]
    pub(crate) fn signal(
        &self,
        notifications: &Notifications,
        count: u64,
    ) -> Option<Operation<()>> {
        match self {
            Way::Direct(arrivals, place) => {
                arrivals.signal_directly(*place, count);
                None
            }
            Way::Device(rank, id) => {
                let value = Signal::Count(Count::of(count)).to_value();
                Some(notify(notifications.round(), *rank, (*id, value)))
            }
        }
    }

    /// Signals the end, after `count` in all. Returns the operation that is under way.
    pub(crate) fn end(
        &self,
        notifications: &Notifications,
        (count, end): (u64, End),
    ) -> Option<Operation<()>> {
        match self {
            Way::Direct(arrivals, place) => {
                arrivals.end_directly(*place, end);
                None
            }
            Way::Device(rank, id) => {
                let signal = match end {
                    End::Closed => Signal::Closed(Count::of(count)),
                    End::Lost => Signal::Lost,
                };
                Some(notify(notifications.round(), *rank, (*id, signal.to_value())))
            }
        }
    }
}
