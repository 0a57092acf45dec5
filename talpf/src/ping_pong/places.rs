//! The guards of the places that peers may write to, at one rank.

use std::sync::Arc;

use talpf_primitives::Mutex;

use crate::held::{GivenUp, Held};
use crate::numbers::Round;
use crate::slot::Slot;

/// What an exchange holds at one rank: a guard of every place from before a peer can put there
/// until nothing lands there any more.
#[derive(Default)]
pub(crate) struct Places {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Of the places of even and of odd rounds.
    held: [Vec<Box<dyn Held>>; 2],
    /// How many rounds have ended well.
    ended: u64,
    /// Where the places are.
    slots: Vec<Arc<Slot>>,
    /// The round in which nobody puts any more.
    last: Option<Round>,
    /// The exchange was dropped in the middle of a round.
    abandoned: bool,
    /// Nothing lands any more, and why.
    failed: Option<Arc<str>>,
}

impl Places {
    pub(super) fn new(slots: Vec<Arc<Slot>>) -> Arc<Self> {
        Arc::new(Places { state: Mutex::new(State { slots, ..State::default() }) })
    }

    /// Keeps the guard of a place until `round` has ended.
    ///
    /// Gives it up if the round two before `round`, to the same place, has not ended well, or the
    /// run has failed: then a task before has failed, or this guard is free because the run has.
    pub(super) fn hold(&self, round: Round, guard: Box<dyn Held>) -> bool {
        let mut state = self.state.lock();
        let too_early = round.0 > state.ended + 1;
        let reason = match &state.failed {
            Some(reason) => Arc::clone(reason),
            None if too_early => Arc::from("the round before has not ended"),
            None => {
                state.held[parity(round)].push(guard);
                return true;
            }
        };
        drop(state);
        drop(GivenUp::new(guard, &reason));
        false
    }

    /// Nobody puts in `round`: with its end, everything is given up.
    pub(super) fn close_after(&self, round: Round) {
        self.state.lock().last = Some(round);
    }

    /// The exchange is dropped in the middle of a round: everything is kept until the run fails.
    #[cold]
    pub(super) fn abandon(&self) {
        self.state.lock().abandoned = true;
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.state.lock().abandoned
    }

    /// The sync of `round` has ended well: its puts have landed, those of the round after the next
    /// one, to the same places, wait for their guards.
    pub(crate) fn end(&self, round: Round) {
        let mut state = self.state.lock();
        state.ended = round.0 + 1;
        let held = std::mem::take(&mut state.held[parity(round)]);
        let over = state.last == Some(round);
        let slots = if over { std::mem::take(&mut state.slots) } else { Vec::new() };
        drop(state);
        drop((held, slots));
    }

    /// The run has failed: takes the places from the device, which peers may be writing to, and
    /// then gives them up.
    #[cold]
    pub(crate) fn fail(&self, reason: &Arc<str>) {
        let slots = self.state.lock().slots.clone();
        slots.iter().for_each(|slot| slot.revoke());
        let mut state = self.state.lock();
        state.failed.get_or_insert_with(|| Arc::clone(reason));
        let held = std::mem::take(&mut state.held);
        drop(state);
        held.into_iter().flatten().for_each(|guard| drop(GivenUp::new(guard, reason)));
    }
}

fn parity(round: Round) -> usize {
    (round.0 % 2) as usize
}
