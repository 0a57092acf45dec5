//! The rank and the number of a lane, by which its rounds are found.

use std::sync::Arc;

use crate::error::Error;
use crate::numbers::{LaneNumber, Rank};
use crate::operation::OpenRound;
use crate::round::RoundState;
use crate::world::{RankState, World};

/// A lane of a rank, as its tasks keep it.
#[derive(Clone)]
pub(crate) struct LaneAddress {
    pub(crate) world: Arc<World>,
    pub(crate) rank: Rank,
    pub(crate) number: LaneNumber,
}

impl LaneAddress {
    #[inline]
    pub(crate) fn state(&self) -> &RankState {
        self.world.rank(self.rank)
    }

    /// Checks that `lane` is one of the same rank, and of the same run.
    ///
    /// **Errors**: it is not.
    pub(crate) fn check_same_rank(&self, lane: &LaneAddress) -> Result<(), Error> {
        if Arc::ptr_eq(&self.world, &lane.world) && self.rank == lane.rank {
            return Ok(());
        }
        let why = "is one of another rank or run: take it from the context of this rank";
        Err(Error::LaneRefused { lane: lane.number, why })
    }

    /// Takes a handle of the program's open round.
    #[inline]
    pub(crate) fn round(&self) -> OpenRound {
        let Self { world, rank, number } = self;
        OpenRound::new(self.state().open_rounds.enter(world, *rank, *number))
    }

    /// Closes the program's open round.
    #[inline]
    pub(crate) fn close(&self) -> Arc<RoundState> {
        let Self { world, rank, number } = self;
        self.state().open_rounds.close(world, *rank, *number)
    }

    /// Lends rounds to the iterations that use the lane.
    pub(crate) fn lend(&self, rounds: u64) {
        let Self { world, rank, number } = self;
        self.state().open_rounds.lend(world, *rank, *number, rounds);
    }

    /// Takes a handle of the open round of the iterations that use the lane.
    pub(crate) fn round_of_iteration(&self) -> OpenRound {
        OpenRound::new(self.open_of_iteration().enter())
    }

    /// Returns the open round of the iterations that use the lane.
    pub(crate) fn open_of_iteration(&self) -> Arc<RoundState> {
        let Self { world, rank, number } = self;
        self.state().open_rounds.of_iteration(world, *rank, *number)
    }

    /// Closes the open round of the iterations that use the lane.
    pub(crate) fn close_of_iteration(&self) -> Arc<RoundState> {
        let Self { world, rank, number } = self;
        self.state().open_rounds.close_of_iteration(world, *rank, *number)
    }
}
