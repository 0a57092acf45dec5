//! Checks of what peers do: how far ahead they are, conflicts of their operations, and what is parked.

use super::Claim;
use super::state::round_of;
use super::table::WindowTable;
use crate::error::Error;
use crate::numbers::{LaneNumber, Rank, Round};
use crate::rounds::{MOST_AHEAD, Rounds};

impl WindowTable {
    /// Checks that `peer` may be in `round` by now, as `rank` of this table is.
    ///
    /// **Errors**: `peer` is too far ahead.
    #[cold]
    pub(crate) fn check_ahead(
        &self,
        (rank, peer): (Rank, Rank),
        lane: LaneNumber,
        round: Round,
    ) -> Result<(), Error> {
        let lanes = &self.state.lock().lanes;
        let behind = lanes.get(lane.index()).map_or(Round(0), Rounds::first);
        Error::check_ahead(lane, (peer, round), (rank, behind), self.most_ahead)
    }

    /// Notes an operation that needs no window. The engine reports one of a round that has ended.
    #[cold]
    pub(crate) fn note(&self, lane: LaneNumber, round: Round, claim: Claim) {
        let mut state = self.state.lock();
        let windows = round_of(&mut state.lanes, lane, round, self.most_ahead);
        if let Some(windows) = windows.filter(|_| self.notes) {
            windows.notes.add(claim);
        }
    }

    /// Returns two operations that read and write one location (R6), of a round all of whose
    /// operations have arrived, if operations are noted.
    pub(crate) fn conflict(&self, lane: LaneNumber, round: Round) -> Option<[Claim; 2]> {
        if !self.notes {
            return None;
        }
        round_of(&mut self.state.lock().lanes, lane, round, MOST_AHEAD)?.notes.conflict()
    }

    /// Returns the sources of parked operations with their number, for reports.
    pub(crate) fn parked(&self) -> Vec<(Rank, usize)> {
        let state = self.state.lock();
        let counts = state.parked.iter().enumerate();
        counts.filter(|(_, count)| **count > 0).map(|(r, count)| (Rank(r as u32), *count)).collect()
    }
}
