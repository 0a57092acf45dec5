//! What a pass of the engine leaves to do.

use smallvec::SmallVec;

use super::request::Request;
use crate::error::Error;
use crate::numbers::Rank;
use crate::operation::Done;
use crate::window::{Freed, Over};
use crate::world::{RankState, World};

/// What has to be done outside the engine's lock. As a rule nothing, or a sync has ended.
#[derive(Default)]
pub(super) struct Deferred {
    /// A pass ends one sync at most.
    pub(super) ended: Option<(Request, Result<(), Box<Error>>)>,
    /// What its round leaves.
    pub(super) over: Option<Over>,
    /// By operations that landed late.
    pub(super) settled: Freed,
    pub(super) to_notify: ToNotify,
    /// Something is waited for that nobody announces.
    pub(super) again: bool,
    pub(super) done: Vec<(Done, Result<(), Error>)>,
    pub(super) failures: Vec<(Vec<Rank>, Error)>,
}

impl Deferred {
    /// Does it, and is empty then.
    #[inline]
    pub(super) fn run(&mut self, rank: &RankState, world: &World) {
        if !self.done.is_empty() {
            self.done.drain(..).for_each(|(done, result)| done(result));
        }
        let freed = self.over.take().map(Over::release);
        // First, so that a main which goes on with an error does not speak for other ranks.
        if !self.failures.is_empty() {
            self.failures.drain(..).for_each(|(ranks, error)| world.fail(&ranks, &error));
        }
        if let Some((request, result)) = self.ended.take() {
            request.end(result.map_err(|error| *error), rank);
        }
        if !self.settled.is_nothing() {
            world.follow(std::mem::take(&mut self.settled));
            // What has landed has arrived: whoever is inside goes round again.
            rank.ring_doorbell();
        }
        freed.into_iter().for_each(|freed| world.follow(freed));
        if !self.to_notify.0.is_empty() {
            let targets = std::mem::take(&mut self.to_notify.0);
            targets.into_iter().for_each(|target| world.notify(target));
        }
        if rank.has_retries() {
            rank.try_again();
        }
    }
}

/// Ranks to be told.
#[derive(Default)]
pub(super) struct ToNotify(SmallVec<[Rank; 8]>);

impl ToNotify {
    /// Adds a rank, as a rule one that is not there: a rank that is told twice looks in vain.
    #[inline]
    pub(super) fn add(&mut self, rank: Rank) {
        if self.0.last() != Some(&rank) {
            self.0.push(rank);
        }
    }
}
