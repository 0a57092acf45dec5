//! The opening of windows, once their regions are free.

use std::sync::Arc;

use talpf_runtime::Region;

use crate::error::Error;
use crate::held_guard::HeldGuard;
use crate::sender::RoundState;
use crate::window::{Area, HasLanded, Kind, SendTicket, Ticket};

/// Spawns the task that opens a window, perhaps the only one, once its region is free.
pub(super) fn spawn_opening(
    round: &Arc<RoundState>,
    window: (usize, Area),
    is_only: bool,
    region: &Region<'_, ()>,
) -> Result<(), Error> {
    let task = round.sender.group.task("expose").communicates().inline();
    let mut unopened = Unopened::new(round);
    let mut open = move |guard| open(unopened.opened(), window, is_only, guard);
    match window.1.kind {
        Kind::Update | Kind::Write => {
            task.inout(region).spawn(move |guard| open(guard.into()))?;
        }
        Kind::Read => task.input(region).spawn(move |guard| open(guard.into()))?,
    }
    Ok(())
}

/// Opens a window of `round`, perhaps the only one, with the guard of its region.
pub(super) fn open(round: &RoundState, window: (usize, Area), is_only: bool, guard: HeldGuard) {
    let RoundState { sender, rank, lane, number, .. } = round;
    let (own, peers) = (&sender.own, &sender.peers);
    let has_landed = |source| peers.has_landed(source, *rank);
    let send_ticket = |ticket: Ticket| {
        let source = peers.remote(ticket.claim.source);
        source.is_some_and(|source| source.give_ticket(*rank, ticket))
    };
    let links = (&has_landed as HasLanded<'_>, &send_ticket as SendTicket<'_>);
    let (freed, is_declared) = own.windows.open(*lane, *number, window, is_only, guard, links);
    if is_declared {
        round.note_declared();
    }
    peers.run_deferred(*rank, freed);
    round.progress_if_rung();
    // Parked operations have landed.
    peers.notify(*rank);
}

/// A window whose task has not run yet, and does not run if a task before it fails.
pub(super) struct Unopened {
    round: Arc<RoundState>,
    failed: bool,
}

impl Unopened {
    pub(super) fn new(round: &Arc<RoundState>) -> Self {
        Unopened { round: Arc::clone(round), failed: true }
    }

    /// Returns the round, whose window is about to open.
    #[inline]
    pub(super) fn opened(&mut self) -> &RoundState {
        self.failed = false;
        &self.round
    }
}

impl Drop for Unopened {
    fn drop(&mut self) {
        if self.failed {
            let RoundState { sender, lane, number, .. } = &*self.round;
            sender.fail(&Error::NotOpened { lane: *lane, round: *number });
        }
    }
}
