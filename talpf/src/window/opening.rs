//! The opening of windows.

use std::sync::atomic::Ordering;

use super::landing::HasLanded;
use super::state::{State, round_of};
use super::table::WindowTable;
use super::tickets::SendTicket;
use super::{Area, Freed};
use crate::held_guard::{HeldGuard, PoisonOnDrop};
use crate::numbers::{LaneNumber, Round};
use crate::rounds::MOST_AHEAD;

impl WindowTable {
    /// Opens windows of a round with the guards of their regions; operations parked for them land, and remote
    /// ranks that will put into them get tickets. A few windows may open before all are declared.
    ///
    /// This also declares the only window of a round, unless an operation is parked that it does
    /// not cover; returns `true` if so. A lock of its own would take the cache line from peers.
    pub(crate) fn open(
        &self,
        (lane, round): (LaneNumber, Round),
        openings: impl IntoIterator<Item = ((usize, Area), HeldGuard)>,
        is_only: bool,
        (has_landed, send): (HasLanded<'_>, SendTicket<'_>),
    ) -> (Freed, bool) {
        let mut openings = openings.into_iter();
        let mut state = self.state.lock();
        let State { idle, is_awaited, lanes, parked, tickets, failed } = &mut *state;
        let mut freed = Freed::default();
        let mut is_declared = false;
        let windows = round_of(lanes, lane, round, MOST_AHEAD).filter(|_| failed.is_none());
        let Some(windows) = windows else {
            // The round ended before the regions were free: nothing was expected in it, or the
            // run has failed.
            let failed = failed.clone();
            drop(state);
            openings.for_each(|(_, guard)| {
                drop(match &failed {
                    Some(reason) => Ok(PoisonOnDrop::new(guard, reason)),
                    None => Err(guard),
                });
            });
            return (freed, is_declared);
        };
        let takes_more = !windows.is_ending() && !self.notes;
        openings.by_ref().for_each(|(window, guard)| {
            is_declared = is_only && windows.declare_only(window.1);
            let (at, area) = ((lane, round, window.0), window.1);
            let window = windows.open(window, guard);
            window.admit_parked(at, parked, has_landed, &mut freed);
            self.note_delayed(window);
            if takes_more && !tickets.are_none() {
                tickets.give(at, window, (has_landed, send));
            }
            if takes_more && window.is_idle() {
                idle.add(at, &area);
            }
        });
        if std::mem::take(is_awaited) {
            let opened = self.opened.load(Ordering::Relaxed);
            self.opened.store(opened.wrapping_add(1), Ordering::Relaxed);
        }
        // Before the list of the windows is freed.
        drop(state);
        (freed, is_declared)
    }
}
