//! The ends of tickets: their puts have arrived, or their sources have returned them.

use std::collections::BTreeMap;

use super::state::{State, end_in_window};
use super::table::WindowTable;
use super::tickets::{TicketCounts, TicketEnd};
use crate::numbers::{LaneNumber, Rank, Round, TicketNumber};

impl WindowTable {
    /// Ends a ticket of `source`, and returns the round that it was for. `None` if the source has none of this
    /// number.
    pub(crate) fn end_ticket(
        &self,
        number: TicketNumber,
        source: Rank,
        end: TicketEnd,
    ) -> Option<(LaneNumber, Round)> {
        let mut state = self.state.lock();
        let State { lanes, tickets, .. } = &mut *state;
        let out = tickets.end(number, source, end)?;
        if let Some(window) = end_in_window(lanes, &out) {
            self.note_delayed(window);
        }
        Some((out.lane, out.round))
    }

    /// Returns the sources of tickets that were recalled and are still out, with their number, for
    /// reports.
    pub(crate) fn recalled_tickets(&self) -> BTreeMap<Rank, usize> {
        self.state.lock().tickets.recalled()
    }

    /// Returns the counts of the tickets of this rank.
    pub(crate) fn ticket_counts(&self) -> TicketCounts {
        self.state.lock().tickets.counts
    }
}
