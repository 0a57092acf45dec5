//! Operations of this rank that wait for the windows of a remote rank.

use std::collections::{HashMap, VecDeque};

use talpf_primitives::Mutex;

use crate::numbers::{LaneNumber, Rank, Round};
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
    lane: LaneNumber,
    round: Round,
    operation: Box<dyn Parked>,
}

impl WindowRequests {
    /// Parks an operation under a number that `send` sends, unless `credits` requests wait. An
    /// operation of an earlier round than all that wait of its lane needs no credit: they may wait
    /// for it.
    pub(super) fn add<L: Landing>(
        &self,
        WindowRequest { lane, round, .. }: WindowRequest,
        operation: L,
        credits: usize,
        send: impl FnOnce(u32),
    ) -> Outcome<L> {
        let mut state = self.state.lock();
        if state.failed {
            return Outcome::Refused(operation);
        }
        let behind = |other: &Waiting| other.lane == lane && other.round <= round;
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
        state.waiting.insert(number, Waiting { lane, round, operation: operation.park() });
        drop(state);
        send(number);
        Outcome::Parked
    }

    /// Posts an operation, which the target has granted.
    pub(super) fn grant(&self, number: u32) {
        let mut state = self.state.lock();
        if let Some(waiting) = state.waiting.remove(&number) {
            state.granted.push_back(waiting.operation);
        }
        drop(state);
        self.post_granted();
    }

    /// Posts granted operations, as far as the send queue has room.
    pub(super) fn post_granted(&self) {
        loop {
            let mut state = self.state.lock();
            let Some(mut operation) = state.granted.pop_front() else {
                return;
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
        !self.state.lock().granted.is_empty()
    }

    fn keep(&self, operation: Box<dyn Parked>) {
        let mut state = self.state.lock();
        if !state.failed {
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

    fn take_all(&self) -> impl Iterator<Item = Box<dyn Parked>> {
        let mut state = self.state.lock();
        let waiting = std::mem::take(&mut state.waiting);
        let granted = std::mem::take(&mut state.granted);
        waiting.into_values().map(|waiting| waiting.operation).chain(granted)
    }
}
