//! The end of a run of several processes.
//!
//! A rank whose program has ended serves the others until theirs have ended too: they may read its
//! memory, and its failure would be theirs. It sends [`ControlMessage::Finished`] once it has the
//! answers to all its requests. Messages that it sends later, because a window has opened late, are
//! of no use to a rank that has finished, too.
//!
//! After a failure the others have [`LINGER`] to learn of it.

use std::time::Duration;

use super::{ControlMessage, Processes};
use crate::error::Error;
use crate::numbers::Rank;
use crate::world::RankState;

/// Longest wait for the other ranks after a failure, and for unsent packets.
const LINGER: Duration = Duration::from_secs(5);
const POLL_PERIOD: Duration = Duration::from_micros(100);

impl Processes {
    /// Sends that this rank has finished, and waits until all have.
    ///
    /// **Errors**: the run has failed meanwhile.
    pub(crate) async fn finish(&self, state: &RankState) -> Result<(), Error> {
        while state.failure().is_none() && !state.has_all_answers() {
            state.group.wait_for(POLL_PERIOD).await;
        }
        self.send_to_all(ControlMessage::Finished);
        let mut deadline_ns = None;
        loop {
            let failure = state.failure();
            // A rank that is lost and has not finished fails the run, once its messages were read.
            let is_lost = |rank: Rank| failure.is_some() && self.device.is_lost(rank.0);
            let all_finished =
                self.others().all(|(rank, _)| self.is_finished(rank) || is_lost(rank));
            let now_ns = state.group.clock().now_ns();
            let is_late = (all_finished || failure.is_some())
                && now_ns > *deadline_ns.get_or_insert(now_ns + LINGER.as_nanos() as u64);
            if is_late || (all_finished && !self.device.has_unsent()) {
                return failure.map_or(Ok(()), Err);
            }
            self.join_termination();
            state.group.wait_for(POLL_PERIOD).await;
        }
    }
}
