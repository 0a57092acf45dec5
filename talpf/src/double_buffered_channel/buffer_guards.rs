//! The guards of the buffers of a channel, at one rank.

use std::sync::Arc;

use talpf_primitives::Mutex;

use crate::held_guard::{HeldGuard, PoisonOnDrop};
use crate::numbers::Round;
use crate::slot::Slot;

/// The guards that a channel holds at one rank: one of every buffer, from before a peer can put
/// there until nothing lands there any more.
#[derive(Default)]
pub(crate) struct BufferGuards {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Guards of the buffers of even and of odd rounds.
    held: [Vec<HeldGuard>; 2],
    /// Number of rounds that have ended without an error.
    ended: u64,
    /// Slots of the buffers.
    slots: Vec<Arc<Slot>>,
    /// The closing round, in which no rank puts, once the channel is closed.
    last: Option<Round>,
    /// `true` once the channel was dropped in the middle of a round.
    abandoned: bool,
    /// Reason of the failure after which nothing lands any more.
    failed: Option<Arc<str>>,
}

impl BufferGuards {
    pub(super) fn new(slots: Vec<Arc<Slot>>) -> Arc<Self> {
        Arc::new(BufferGuards { state: Mutex::new(State { slots, ..State::default() }) })
    }

    /// Keeps the guard of a buffer until `round` has ended, and returns `true`.
    ///
    /// Gives the guard up and returns `false` if the round two before `round`, to the same buffer,
    /// has not ended without an error, or the run has failed: then a task before has failed, or the
    /// failure of the run has made this guard free.
    pub(super) fn hold(&self, round: Round, guard: HeldGuard) -> bool {
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
        drop(PoisonOnDrop::new(guard, &reason));
        false
    }

    /// Closes the channel: no rank puts in `round`, and its end releases all guards and slots.
    pub(super) fn close_after(&self, round: Round) {
        self.state.lock().last = Some(round);
    }

    /// Keeps all guards until the run fails: the channel was dropped in the middle of a round.
    #[cold]
    pub(super) fn abandon(&self) {
        self.state.lock().abandoned = true;
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.state.lock().abandoned
    }

    /// Releases the guards of `round`, whose sync has ended without an error: its puts have landed,
    /// and those of round + 2, to the same buffers, wait for new guards.
    pub(crate) fn end(&self, round: Round) {
        let mut state = self.state.lock();
        state.ended = round.0 + 1;
        let held = std::mem::take(&mut state.held[parity(round)]);
        let over = state.last == Some(round);
        let slots = if over { std::mem::take(&mut state.slots) } else { Vec::new() };
        drop(state);
        drop((held, slots));
    }

    /// Takes the buffers, which peers may be writing to, from the device and then gives their
    /// guards up, after a failure of the run.
    #[cold]
    pub(crate) fn fail(&self, reason: &Arc<str>) {
        let slots = self.state.lock().slots.clone();
        slots.iter().for_each(|slot| slot.revoke());
        let mut state = self.state.lock();
        state.failed.get_or_insert_with(|| Arc::clone(reason));
        let held = std::mem::take(&mut state.held);
        drop(state);
        held.into_iter().flatten().for_each(|guard| drop(PoisonOnDrop::new(guard, reason)));
    }
}

fn parity(round: Round) -> usize {
    (round.0 % 2) as usize
}
