//! The state of the notifications of one rank: its ids, and what is under way.
//!
//! This file takes no lock: the table does.

use std::ops::Range;
use std::sync::Arc;

use super::Notification;
use super::follows::{Admitted, Follows};
use super::id::{Admission, Untaken, Waiter, WaiterNumber, Waiting};
use super::ids::Ids;
use super::under_way::{Coming, UnderWay};
use crate::numbers::{ArrivalNumber, Rank};

#[derive(Default)]
pub(super) struct State {
    pub(super) ids: Ids,
    /// Waits for one of several ids.
    pub(super) any: Vec<(Range<u32>, Waiter)>,
    pub(super) under_way: UnderWay,
    /// Operations under way that found no room to be posted.
    pub(super) unposted: Vec<Admitted>,
    /// Number of parked and unposted operations by source.
    pub(super) parked: Vec<usize>,
    /// Number of waits that were ever begun.
    pub(super) waiters: u64,
    /// Reason of the failure after which nothing lands any more.
    pub(super) failed: Option<Arc<str>>,
}

impl State {
    /// Returns the number of a new wait.
    pub(super) fn next_waiter(&mut self) -> WaiterNumber {
        self.waiters += 1;
        WaiterNumber(self.waiters)
    }

    /// Notes that the post of an operation under way has ended.
    pub(super) fn end_to_post(&mut self, number: ArrivalNumber) {
        if let Some(coming) = self.under_way.at(number) {
            coming.posting = false;
            if coming.arrived {
                self.under_way.remove(number);
            }
        }
    }

    /// Lets parked operations of an id land, as far as they may.
    pub(super) fn admit_parked(&mut self, id: u32, follows: &mut Follows) {
        let State { ids, any, under_way, parked, .. } = self;
        let of_id = ids.of(id);
        while let Some(first) = of_id.parked.front().map(|waiting| waiting.notified) {
            if under_way.is_full() {
                return;
            }
            let notification @ Notification { source, .. } = first.notification;
            let waiter = match of_id.admit(&first, || take_any(any, id)) {
                Admission::Lands(waiter) => Some(waiter),
                Admission::Waits => return,
                Admission::Refused => None,
            };
            let Some(Waiting { writer, mut operation, .. }) = of_id.parked.pop_front() else {
                return;
            };
            let Some(waiter) = waiter else {
                let count = parked_of(parked, source);
                *count = count.saturating_sub(1);
                follows.lists().refused.push(operation);
                return;
            };
            let is_awaited = waiter.is_some();
            let number = under_way.add(Coming::new(notification, writer, waiter, true));
            if !is_awaited {
                under_way.set_position(number, of_id.keep(Untaken::Coming(number)));
            }
            operation.admit(number);
            follows.lists().admitted.push(Admitted { number, source, operation });
        }
    }

    /// Gives back the credit of a parked operation.
    pub(super) fn unpark(&mut self, source: Rank, follows: &mut Follows) {
        // A failure of the run has returned the credit of all.
        let count = parked_of(&mut self.parked, source);
        *count = count.saturating_sub(1);
        let sources = &mut follows.lists().sources;
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
}

/// Returns the number of parked operations of a source.
pub(super) fn parked_of(parked: &mut Vec<usize>, source: Rank) -> &mut usize {
    if parked.len() <= source.index() {
        parked.resize(source.index() + 1, 0);
    }
    &mut parked[source.index()]
}

/// Takes the oldest wait for any of several ids that waits for this one.
#[inline]
pub(super) fn take_any(any: &mut Vec<(Range<u32>, Waiter)>, id: u32) -> Option<Waiter> {
    let at = any.iter().position(|(ids, _)| ids.contains(&id))?;
    Some(any.remove(at).1)
}
