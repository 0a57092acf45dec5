//! Handles of syncs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::error::Error;
use crate::numbers::Round;
use crate::sender::RoundState;

/// A handle of a sync, to be awaited for the end of its round.
///
/// **Completion**: *round ended*: operations that this rank issued in the round are posted, those
/// that others issued for it are delivered, and the mode may wait for more.
/// **Errors**: arrivals that are not as expected; a target outside every window (R7); if the run
/// checks for it, a location that the round reads and writes (R6); a rank that failed.
#[derive(Clone)]
pub struct SyncHandle {
    pub(super) round: Arc<RoundState>,
}

impl SyncHandle {
    /// Returns the number of the round that the sync ends.
    pub fn round(&self) -> Round {
        self.round.number
    }
}

impl Future for SyncHandle {
    type Output = Result<(), Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let round = &self.round;
        let RoundState { sender, outcome, .. } = &**round;
        sender.batches.post_all();
        if outcome.result().is_none() {
            round.poll_while_spare(|| outcome.result());
        }
        let last_poll = || round.engine().map_or((), |engine| engine.poll());
        match sender.own.wait_flag.wait(outcome, cx.waker(), last_poll) {
            Some(result) => Poll::Ready(result),
            None => {
                talpf_runtime::note_wait("a sync");
                Poll::Pending
            }
        }
    }
}
