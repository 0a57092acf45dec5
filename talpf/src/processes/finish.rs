//! The end of a run of several processes.
//!
//! A rank that is done serves the others until they are done too: they may read its memory, and its
//! failure would be theirs. It says so once it has the answers to all its requests. What it sends
//! after that, because a window has opened late, nobody needs who has said the same.
//!
//! After a failure the others are given a while to learn of it.

use std::time::Duration;

use super::{ControlMessage, Processes};
use crate::error::Error;
use crate::numbers::Rank;
use crate::world::RankState;

/// How long a rank waits for what it may have to do without.
const LINGER: Duration = Duration::from_secs(5);
const POLL_PERIOD: Duration = Duration::from_micros(100);

impl Processes {
    /// Says that this rank is done, and waits until all are.
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
            // One that is lost and has said nothing is a failure, once its letters have been read.
            let is_lost = |rank: Rank| failure.is_some() && self.device.is_lost(rank.0);
            let all_gone = self.others().all(|(rank, _)| self.is_gone(rank) || is_lost(rank));
            let now_ns = state.group.clock().now_ns();
            let is_late = (all_gone || failure.is_some())
                && now_ns > *deadline_ns.get_or_insert(now_ns + LINGER.as_nanos() as u64);
            if is_late || (all_gone && !self.device.has_unsent()) {
                return failure.map_or(Ok(()), Err);
            }
            self.join_termination();
            state.group.wait_for(POLL_PERIOD).await;
        }
    }
}
