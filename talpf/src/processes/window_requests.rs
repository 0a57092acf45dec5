//! Operations of this rank that wait for the windows of a rank elsewhere.

use std::collections::{HashMap, VecDeque};

use talpf_primitives::Mutex;

use crate::numbers::{Lane, Rank, Round};
use crate::window::{Landing, Outcome, Parked, Post};

/// Whose windows are asked, and those of which round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WindowRequest {
    pub(crate) target: Rank,
    pub(crate) lane: Lane,
    pub(crate) round: Round,
}

/// Those that one target was asked for.
#[derive(Default)]
pub(super) struct WindowRequests {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u32,
    waiting: HashMap<u32, Waiting>,
    /// May land, and found the send queue full.
    granted: VecDeque<Box<dyn Parked>>,
    failed: bool,
}

struct Waiting {
    lane: Lane,
    round: Round,
    operation: Box<dyn Parked>,
}

impl WindowRequests {
    /// Parks an operation under a number that `send` sends, unless `credits` of them wait. One of
    /// an earlier round than all that wait of its lane gets past them: they may wait for it.
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
            // One that has waited while all others were used keeps its number.
            if !state.waiting.contains_key(&number) {
                break number;
            }
        };
        state.waiting.insert(number, Waiting { lane, round, operation: operation.park() });
        drop(state);
        send(number);
        Outcome::Parked
    }

    /// The target lets an operation land.
    pub(super) fn go(&self, number: u32) {
        let mut state = self.state.lock();
        if let Some(waiting) = state.waiting.remove(&number) {
            state.granted.push_back(waiting.operation);
        }
        drop(state);
        self.post_granted();
    }

    /// Posts what may land, as far as the send queue has room.
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

    fn keep(&self, operation: Box<dyn Parked>) {
        let mut state = self.state.lock();
        if !state.failed {
            return state.granted.push_front(operation);
        }
        drop(state);
        operation.refuse();
    }

    /// The target has no window for an operation.
    pub(super) fn refuse(&self, number: u32) {
        let refused = self.state.lock().waiting.remove(&number);
        refused.into_iter().for_each(|waiting| waiting.operation.refuse());
    }

    /// The run has failed: refuses what waits and all that comes.
    pub(super) fn fail(&self) {
        self.state.lock().failed = true;
        self.take_all().for_each(|operation| operation.refuse());
    }

    /// Gives up what waits: the run is over.
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
