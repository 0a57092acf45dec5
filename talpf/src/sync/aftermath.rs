//! What a pass of the engine leaves to do.

use smallvec::SmallVec;

use super::request::Request;
use crate::error::Error;
use crate::numbers::Rank;
use crate::operation::Done;
use crate::window::Freed;
use crate::world::{RankState, World};

/// What has to be done outside the engine's lock.
#[derive(Default)]
pub(super) struct Aftermath {
    pub(super) done: Vec<(Done, Result<(), Error>)>,
    /// A pass ends one sync at most.
    pub(super) ended: Option<(Request, Result<(), Box<Error>>)>,
    /// By windows that closed with it.
    pub(super) closed: Freed,
    /// By operations that landed late.
    pub(super) settled: Freed,
    pub(super) failures: Vec<(Vec<Rank>, Error)>,
    /// Ranks that were sent control messages.
    pub(super) told: SmallVec<[Rank; 4]>,
    /// Something is waited for that nobody announces.
    pub(super) again: bool,
}

impl Aftermath {
    #[inline]
    pub(super) fn settle(self, rank: &RankState, world: &World) {
        let has_settled = !self.settled.is_nothing();
        for (done, result) in self.done {
            done(result);
        }
        if let Some((request, result)) = self.ended {
            rank.engine.sync_has_ended();
            request.end(result.map_err(|error| *error), rank);
        }
        for (ranks, error) in self.failures {
            world.fail(&ranks, &error);
        }
        world.follow(self.settled);
        world.follow(self.closed);
        self.told.into_iter().for_each(|target| world.tell(target));
        if has_settled {
            // What has landed has arrived: whoever is inside goes round again.
            rank.kick();
        }
        if rank.has_later() {
            rank.try_again();
        }
    }
}
