//! The rank and the number of a lane, by which its rounds are found.

use std::sync::Arc;

use crate::error::Error;
use crate::numbers::{LaneNumber, Rank};
use crate::operation::OpenRound;
use crate::sender::{RoundState, Sender};
use crate::sync::Receiver;

/// A lane of a rank, as its tasks keep it.
#[derive(Clone)]
pub(crate) struct LaneAddress {
    pub(crate) receiver: Arc<Receiver>,
    pub(crate) number: LaneNumber,
}

impl LaneAddress {
    #[inline]
    pub(crate) fn sender(&self) -> &Arc<Sender> {
        &self.receiver.sender
    }

    #[inline]
    pub(crate) fn rank(&self) -> Rank {
        self.receiver.rank()
    }

    /// Checks that `lane` is one of the same rank, and of the same run.
    ///
    /// **Errors**: it is not.
    pub(crate) fn check_same_rank(&self, lane: &LaneAddress) -> Result<(), Error> {
        if Arc::ptr_eq(&self.receiver, &lane.receiver) {
            return Ok(());
        }
        let why = "is one of another rank or run: take it from the context of this rank";
        Err(Error::LaneRefused { lane: lane.number, why })
    }

    /// Takes a handle of the program's open round.
    #[inline]
    pub(crate) fn round(&self) -> OpenRound {
        let sender = self.sender();
        OpenRound::new(sender.open_rounds.enter(sender, self.number))
    }

    /// Closes the program's open round.
    #[inline]
    pub(crate) fn close(&self) -> Arc<RoundState> {
        let sender = self.sender();
        sender.open_rounds.close(sender, self.number)
    }

    /// Lends rounds to the iterations that use the lane.
    pub(crate) fn lend(&self, rounds: u64) {
        let sender = self.sender();
        sender.open_rounds.lend(sender, self.number, rounds);
    }

    /// Takes a handle of the open round of the iterations that use the lane.
    pub(crate) fn round_of_iteration(&self) -> OpenRound {
        OpenRound::new(self.open_of_iteration().enter())
    }

    /// Returns the open round of the iterations that use the lane.
    pub(crate) fn open_of_iteration(&self) -> Arc<RoundState> {
        let sender = self.sender();
        sender.open_rounds.of_iteration(sender, self.number)
    }

    /// Closes the open round of the iterations that use the lane.
    pub(crate) fn close_of_iteration(&self) -> Arc<RoundState> {
        let sender = self.sender();
        sender.open_rounds.close_of_iteration(sender, self.number)
    }
}
