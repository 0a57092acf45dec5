//! Syncs that wait for a remote rank whose program has ended without them.
//!
//! A rank that has finished has ended all its syncs, and has the answers to all its requests. So
//! once this rank has handled what has arrived, operations that are still missing never come,
//! except those that the windows here have not let land. Under `Msg`, and for acknowledgements, no
//! rank knows whose operations are missing: such a sync fails only when all others have finished.

use smallvec::SmallVec;

use super::active_sync::{ActiveSync, Stage};
use super::deferred::Deferred;
use super::dissemination::Steps;
use super::engine::State;
use super::lane_state::expected_from;
use crate::error::Error;
use crate::numbers::{LaneNumber, Rank};
use crate::sender::Sender;

/// Remote ranks that had finished when a pass began to take in what has arrived.
pub(super) type Finished = SmallVec<[Rank; 4]>;

impl State {
    /// Fails the run if the first sync of a lane waits for a rank that has finished.
    #[inline]
    pub(super) fn fail_abandoned(
        &mut self,
        finished: &Finished,
        sender: &Sender,
        out: &mut Deferred,
    ) {
        if finished.is_empty() || sender.has_failed() {
            return;
        }
        let abandoned = self.abandoned(finished, sender);
        // If arrivals are left, a later pass checks. In this order: what this rank has sent to
        // itself may have landed meanwhile.
        if sender.own.endpoint.arrived.is_empty() {
            out.failures.extend(abandoned.map(|error| (vec![sender.rank()], error)));
        }
    }

    #[cold]
    fn abandoned(&mut self, finished: &Finished, sender: &Sender) -> Option<Error> {
        // In this order: a granted operation is not parked any more, but has not landed.
        let is_parked = !sender.own.windows.parked().is_empty();
        let lands = |source: Rank| is_parked || !sender.peers.has_landed(source, sender.rank());
        let (ranks, plan) = (self.ranks, self.plan);
        let (own, has_sent) = (self.rank, self.has_sent_controls());
        let none_comes = || {
            let all_finished = finished.len() + 1 == ranks as usize;
            all_finished && has_sent && !(0..ranks).map(Rank).any(lands)
        };
        for lane in (0..self.lanes.len()).map(|lane| LaneNumber(lane as u8)) {
            let state = self.lane(lane);
            let Some(ActiveSync { round, mode, stage, expected, .. }) = state.syncs.front() else {
                continue;
            };
            let number = round.number;
            let Some(arrivals) = state.arrivals.round(number) else {
                continue;
            };
            // A rank that sends no step to this one is reported by those that it sends to.
            let is_missing_step = |source: &Rank, arrived: Steps| {
                plan.step_of(*source).is_some_and(|step| !arrived.has(step))
            };
            let owes = |source: &&Rank| match *stage {
                // No rank ends a round in which this one has not begun to disseminate.
                Stage::Delivering => true,
                Stage::Counting(_) => is_missing_step(source, arrivals.counted),
                Stage::Arriving => {
                    let of_source = expected_from(source.index(), *mode, &state.pattern, arrivals);
                    let is_missing =
                        |expected| arrivals.data[source.index()] < expected && !lands(**source);
                    // An operation of this rank to itself may have been let in and not be posted.
                    let has_own = || arrivals.data[own.index()] >= round.sent_to(own);
                    of_source.is_some_and(is_missing)
                        || of_source.is_none()
                            && arrivals.total < *expected
                            && has_own()
                            && none_comes()
                }
                Stage::Barrier(_) => is_missing_step(source, arrivals.barrier),
                Stage::Acknowledging => none_comes(),
                Stage::Posting | Stage::Closing => false,
            };
            if let Some(&source) = finished.iter().find(owes) {
                let reason = format!("it has ended, and a sync of {lane} {number} waits for it");
                return Some(Error::PeerFailed { rank: source, reason });
            }
        }
        None
    }
}
