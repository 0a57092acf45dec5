//! Ranks that keep an exchange of counts from ending, for reports of hangs.
//!
//! A rank in an exchange waits for one other rank at a time, which often waits for others itself.
//! The report names those that wait for none, as they have not begun a sync.

use std::sync::Arc;

use super::active_sync::Stage;
use super::engine::State;
use super::receiver::Receiver;
use crate::numbers::{LaneNumber, Rank, Round};
use crate::sender::RoundState;

impl Receiver {
    /// Returns, for each lane, the ranks whose counts this rank waits for and that have not ended
    /// the round with a sync, as far as this process knows.
    #[cold]
    pub(super) fn absent(&self) -> Vec<Vec<Rank>> {
        // One lock at a time: another rank may report, too.
        let exchanges: Vec<_> = self.with_state(|state| {
            let lanes = (0..state.lanes.len()).map(|lane| LaneNumber(lane as u8));
            lanes.map(|lane| state.unheard_of(lane)).collect()
        });
        let absent = |(round, unheard_of): (Arc<RoundState>, Vec<Rank>)| {
            let is_absent =
                |rank: &Rank| !self.sender.peers.has_ended(*rank, round.lane, round.number);
            unheard_of.into_iter().filter(is_absent).collect()
        };
        exchanges.into_iter().map(|of| of.map(absent).unwrap_or_default()).collect()
    }
}

impl State {
    /// Returns the round of a lane that is in an exchange of counts, and the ranks that no message
    /// of the exchange has reported.
    fn unheard_of(&mut self, lane: LaneNumber) -> Option<(Arc<RoundState>, Vec<Rank>)> {
        let (ranks, plan) = (self.ranks, self.plan);
        let state = self.lane(lane);
        let sync = state.syncs.front()?;
        if !matches!(sync.stage, Stage::Delivering | Stage::Counting(_)) {
            return None;
        }
        let round = Arc::clone(&sync.round);
        let arrivals = state.arrivals.round(round.number)?;
        let is_heard_of = |source: Rank| {
            arrivals.counts()[source.index()] > 0 || plan.covers(source, arrivals.counted)
        };
        let unheard_of = (0..ranks).map(Rank).filter(|source| !is_heard_of(*source)).collect();
        Some((round, unheard_of))
    }

    /// Returns `true` if the rank has ended a round with a sync.
    pub(super) fn has_ended(&mut self, lane: LaneNumber, round: Round) -> bool {
        let lane = self.lane(lane);
        let mut rounds = lane.syncs.iter().map(|sync| sync.round.number);
        lane.arrivals.first() > round || rounds.any(|number| number == round)
    }
}
