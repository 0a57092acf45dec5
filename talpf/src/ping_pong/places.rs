//! The guards of the places that peers may write to, at one rank.

use std::any::Any;
use std::sync::Arc;

use parking_lot::Mutex;

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
    held: [Vec<Box<dyn Any + Send>>; 2],
    /// How many rounds have ended well.
    ended: u64,
    /// Where the places are.
    slots: Vec<Arc<Slot>>,
    /// The round in which nobody puts any more.
    last: Option<Round>,
    /// The exchange was dropped in the middle of a round.
    abandoned: bool,
    /// Nothing lands any more.
    failed: bool,
}

impl Places {
    pub(super) fn new(slots: Vec<Arc<Slot>>) -> Arc<Self> {
        Arc::new(Places { state: Mutex::new(State { slots, ..State::default() }) })
    }

    /// Keeps the guard of a place until `round` has ended.
    ///
    /// Gives it back if the round two before `round`, to the same place, has not ended well, or the
    /// run has failed: then a task before has failed, or this guard is free because the run has.
    pub(super) fn hold<G: Send + 'static>(&self, round: Round, guard: G) -> Result<(), G> {
        let mut state = self.state.lock();
        if state.failed || round.0 > state.ended + 1 {
            return Err(guard);
        }
        state.held[parity(round)].push(Box::new(guard));
        Ok(())
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
    /// then lets the tasks of this rank have them.
    #[cold]
    pub(crate) fn fail(&self) {
        let slots = self.state.lock().slots.clone();
        slots.iter().for_each(|slot| slot.revoke());
        let mut state = self.state.lock();
        state.failed = true;
        let held = std::mem::take(&mut state.held);
        drop(state);
        drop(held);
    }
}

fn parity(round: Round) -> usize {
    (round.0 % 2) as usize
}
