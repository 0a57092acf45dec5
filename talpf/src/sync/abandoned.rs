//! Syncs that wait for a rank elsewhere whose program has ended without them.
//!
//! Such a rank has ended all its syncs, and before it says so it has the answers to all that it has
//! sent: once this rank has taken in what has arrived, whatever is missing then never comes, but
//! for operations that the windows here have not let land. Under `Msg`, and for acknowledgements,
//! nobody knows who is missing: such a sync fails only when all others have ended.

use smallvec::SmallVec;

use super::deferred::Deferred;
use super::dissemination::Steps;
use super::engine::State;
use super::request::{Request, Stage};
use super::stages::expected_from;
use crate::error::Error;
use crate::numbers::{Lane, Rank};
use crate::world::{RankState, World};

/// Ranks elsewhere that have ended.
pub(super) type Gone = SmallVec<[Rank; 4]>;

impl World {
    /// Those that had ended before what has arrived by now is taken in.
    #[inline]
    pub(super) fn gone(&self) -> Gone {
        self.processes().into_iter().flat_map(|processes| processes.gone()).collect()
    }
}

impl State {
    /// Fails the run if the first sync of a lane waits for one of those that are `gone`.
    #[inline]
    pub(super) fn fail_abandoned(
        &mut self,
        gone: &Gone,
        rank: &RankState,
        world: &World,
        out: &mut Deferred,
    ) {
        // What has not been taken in yet is by the next pass.
        if !gone.is_empty() && !rank.has_failed() && rank.endpoint.arrived.is_empty() {
            out.failures.extend(self.abandoned(gone, rank, world).map(|e| (vec![rank.rank], e)));
        }
    }

    #[cold]
    fn abandoned(&mut self, gone: &Gone, rank: &RankState, world: &World) -> Option<Error> {
        // In this order: what is let go is not parked any more, but has not landed.
        let is_parked = !rank.windows.parked().is_empty();
        let lands = |source: Rank| is_parked || !world.has_landed(source, rank.rank);
        let (ranks, plan) = (self.ranks, self.plan);
        let nobody_comes = || gone.len() + 1 == ranks as usize && !(0..ranks).map(Rank).any(lands);
        for lane in (0..self.lanes.len()).map(|lane| Lane(lane as u8)) {
            let state = self.lane(lane);
            let Some(Request { round, mode, stage, expected, .. }) = state.requests.front() else {
                continue;
            };
            let number = round.number;
            let Some(arrivals) = state.arrivals.round(number) else {
                continue;
            };
            // Those that do not meet this rank in a step are named by others.
            let is_missing_step = |source: &Rank, come: Steps| {
                plan.step_of(*source).is_some_and(|step| !come.has(step))
            };
            let owes = |source: &&Rank| match *stage {
                // It has not ended a round in which this rank has not begun to disseminate.
                Stage::Delivering => true,
                Stage::Counting(_) => is_missing_step(source, arrivals.counted),
                Stage::Arriving => {
                    let of_source = expected_from(source.index(), *mode, &state.pattern, arrivals);
                    let is_missing =
                        |expected| arrivals.data[source.index()] < expected && !lands(**source);
                    of_source.is_some_and(is_missing)
                        || of_source.is_none() && arrivals.total < *expected && nobody_comes()
                }
                Stage::Barrier(_) => is_missing_step(source, arrivals.barrier),
                Stage::Acknowledging => nobody_comes(),
                Stage::Posting | Stage::Closing => false,
            };
            if let Some(&source) = gone.iter().find(owes) {
                let reason = format!("it has ended, and a sync of {lane} {number} waits for it");
                return Some(Error::PeerFailed { rank: source, reason });
            }
        }
        None
    }
}
