//! The state of one id at its target: notifications that have come, or waits for more.

use std::collections::VecDeque;

use super::Notification;
use super::claim::NotifiedClaim;
use super::follows::Completion;
use crate::numbers::{ArrivalNumber, Rank};
use crate::window::{Area, Parked};

/// Largest number of notifications of one id that are kept for later waits. More are parked.
const MOST_UNTAKEN: usize = 1024;

/// The state of one id. As long as there are waiters nothing is there for later waits, nor parked.
#[derive(Default)]
pub(super) struct Id {
    /// Waits in their order.
    pub(super) waiters: VecDeque<Waiter>,
    /// Notifications that no wait has taken, in the order in which they were let land: some may
    /// arrive before earlier ones.
    pub(super) untaken: VecDeque<Untaken>,
    /// Operations that may not land yet, in order.
    pub(super) parked: VecDeque<Waiting>,
}

/// A notification that no wait has taken.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Untaken {
    Arrived(Notification),
    Coming(ArrivalNumber),
}

/// A wait.
pub(super) struct Waiter {
    pub(super) number: WaiterNumber,
    /// The region that a put may land in.
    pub(super) inbox: Option<Area>,
    pub(super) completion: Completion,
}

/// The number of a wait, unique at its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaiterNumber(pub(super) u64);

/// A parked operation.
pub(super) struct Waiting {
    pub(super) notified: NotifiedClaim,
    pub(super) writer: Rank,
    pub(super) operation: Box<dyn Parked>,
}

/// The decision about an operation.
pub(super) enum Admission {
    /// The operation may land, and ends this wait if there is one.
    Lands(Option<Waiter>),
    /// The operation is parked.
    Waits,
    /// The first wait has no inbox that covers the operation.
    Refused,
}

impl Id {
    /// Decides about an operation before which none is parked. `any` finds a wait for one of several
    /// ids.
    #[inline]
    pub(super) fn admit(
        &mut self,
        notified: &NotifiedClaim,
        any: impl FnOnce() -> Option<Waiter>,
    ) -> Admission {
        let first = self.waiters.front();
        if notified.needs_inbox() {
            return match first.map(|waiter| waiter.inbox) {
                Some(Some(inbox)) if inbox.covers(&notified.claim) => {
                    Admission::Lands(self.waiters.pop_front())
                }
                Some(_) => Admission::Refused,
                None => Admission::Waits,
            };
        }
        match self.waiters.pop_front().or_else(any) {
            None if self.untaken.len() >= MOST_UNTAKEN => Admission::Waits,
            waiter => Admission::Lands(waiter),
        }
    }

    /// Returns `true` if an operation of `source` is parked.
    pub(super) fn has_parked_of(&self, source: Rank) -> bool {
        self.parked.iter().any(|waiting| waiting.notified.notification.source == source)
    }
}
