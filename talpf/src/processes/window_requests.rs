//! Operations of this rank that wait for the windows, or the inboxes, of a remote rank.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use talpf_primitives::Mutex;

use crate::numbers::{ArrivalNumber, LaneNumber, Rank, Round};
use crate::window::{Landing, Outcome, Parked, Post};

/// The windows that an operation is for: those of one round at one rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WindowRequest {
    pub(crate) target: Rank,
    pub(crate) lane: LaneNumber,
    pub(crate) round: Round,
}

/// The window requests to one target that have no answer yet.
#[derive(Default)]
pub(super) struct WindowRequests {
    state: Mutex<State>,
    /// Set while there may be granted operations. Changed under the lock.
    has_granted: AtomicBool,
}

#[derive(Default)]
struct State {
    next: u32,
    waiting: HashMap<u32, Waiting>,
    /// Granted operations that have not been posted, as the send queue was full.
    granted: VecDeque<Box<dyn Parked>>,
    failed: bool,
}

struct Waiting {
    order: Order,
    operation: Box<dyn Parked>,
}

/// The operations that may have to land before one, without which it never may.
#[derive(Clone, Copy)]
pub(super) enum Order {
    /// Operations of the same and of earlier rounds of a lane.
    Round(LaneNumber, Round),
    /// Operations with notifications of one id.
    Notification(u32),
}

impl Order {
    /// Returns `true` if the operation of `other` may land without this one.
    fn is_behind(self, other: Order) -> bool {
        match (self, other) {
            (Order::Round(lane, round), Order::Round(of_lane, before)) => {
                lane == of_lane && before <= round
            }
            (Order::Notification(id), Order::Notification(other)) => id == other,
            _ => false,
        }
    }
}

impl WindowRequest {
    pub(super) fn order(self) -> Order {
        Order::Round(self.lane, self.round)
    }
}

impl WindowRequests {
    /// Parks an operation under a number that `send` sends, unless `credits` requests wait. An
    /// operation that comes before all that wait of its lane, or of its id, needs no credit: they may
    /// wait for it.
    pub(super) fn add<L: Landing>(
        &self,
        order: Order,
        operation: L,
        credits: usize,
        send: impl FnOnce(u32),
    ) -> Outcome<L> {
        let mut state = self.state.lock();
        if state.failed {
            return Outcome::Refused(operation);
        }
        let behind = |other: &Waiting| order.is_behind(other.order);
        if state.waiting.len() >= credits && state.waiting.values().any(behind) {
            return Outcome::Retry(operation);
        }
        let number = loop {
            let number = state.next;
            state.next = number.wrapping_add(1);
            // After the numbers have wrapped, an old request may still have this one.
            if !state.waiting.contains_key(&number) {
                break number;
            }
        };
        state.waiting.insert(number, Waiting { order, operation: operation.park() });
        drop(state);
        send(number);
        Outcome::Parked
    }

    /// Posts an operation, which the target has granted: under `arrival`, if it is one outside rounds.
    pub(super) fn grant(&self, number: u32, arrival: Option<ArrivalNumber>) {
        let mut state = self.state.lock();
        if let Some(mut waiting) = state.waiting.remove(&number) {
            arrival.into_iter().for_each(|arrival| waiting.operation.admit(arrival));
            state.granted.push_back(waiting.operation);
            self.has_granted.store(true, Ordering::Release);
        }
        drop(state);
        self.post_granted();
    }

    /// Posts granted operations, as far as the send queue has room.
    pub(super) fn post_granted(&self) {
        while self.has_granted() {
            let mut state = self.state.lock();
            let Some(mut operation) = state.granted.pop_front() else {
                return self.has_granted.store(false, Ordering::Release);
            };
            drop(state);
            if operation.post() != Post::All {
                self.keep(operation);
                return;
            }
        }
    }

    /// Returns `true` if granted operations wait for room in the send queue.
    pub(super) fn has_granted(&self) -> bool {
        self.has_granted.load(Ordering::Acquire)
    }

    fn keep(&self, operation: Box<dyn Parked>) {
        let mut state = self.state.lock();
        if !state.failed {
            self.has_granted.store(true, Ordering::Release);
            return state.granted.push_front(operation);
        }
        drop(state);
        operation.refuse();
    }

    /// Refuses an operation, for which the target has no window.
    pub(super) fn refuse(&self, number: u32) {
        let refused = self.state.lock().waiting.remove(&number);
        refused.into_iter().for_each(|waiting| waiting.operation.refuse());
    }

    /// Refuses all operations that wait and all later ones, after a failure of the run.
    pub(super) fn fail(&self) {
        self.state.lock().failed = true;
        self.take_all().for_each(|operation| operation.refuse());
    }

    /// Drops all operations that wait, at the end of the run.
    pub(super) fn clear(&self) {
        self.take_all().for_each(drop);
    }

    /// Returns the ids of notifications that wait, each with their number, for reports.
    pub(super) fn ids(&self) -> BTreeMap<u32, usize> {
        let mut ids = BTreeMap::new();
        for waiting in self.state.lock().waiting.values() {
            if let Order::Notification(id) = waiting.order {
                *ids.entry(id).or_default() += 1;
            }
        }
        ids
    }

    fn take_all(&self) -> impl Iterator<Item = Box<dyn Parked>> {
        let mut state = self.state.lock();
        let waiting = std::mem::take(&mut state.waiting);
        let granted = std::mem::take(&mut state.granted);
        waiting.into_values().map(|waiting| waiting.operation).chain(granted)
    }
}
