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
    pub(super) ended: SmallVec<[(Request, Result<(), Error>); 1]>,
    pub(super) freed: SmallVec<[Freed; 1]>,
    pub(super) failures: Vec<(Vec<Rank>, Error)>,
    /// Something is waited for that nobody announces.
    pub(super) again: bool,
}

impl Aftermath {
    pub(super) fn settle(self, rank: &RankState, world: &World) {
        for (done, result) in self.done {
            done(result);
        }
        for (request, result) in self.ended {
            rank.engine.sync_has_ended();
            request.end(result);
        }
        for (ranks, error) in self.failures {
            world.fail(&ranks, &error);
        }
        for freed in self.freed {
            world.follow(freed);
        }
        if rank.has_later() {
            rank.try_again();
        }
    }
}
