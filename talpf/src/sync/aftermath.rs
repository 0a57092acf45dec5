//! What a pass of the engine leaves to do.

use super::request::Request;
use crate::error::Error;
use crate::numbers::Rank;
use crate::operation::Done;
use crate::window::{Freed, Over};
use crate::world::{RankState, World};

/// What has to be done outside the engine's lock. As a rule nothing, or a sync has ended.
#[derive(Default)]
pub(super) struct Aftermath {
    /// A pass ends one sync at most.
    pub(super) ended: Option<(Request, Result<(), Box<Error>>)>,
    /// What its round leaves.
    pub(super) over: Option<Over>,
    /// By operations that landed late.
    pub(super) settled: Freed,
    pub(super) told: Told,
    /// Something is waited for that nobody announces.
    pub(super) again: bool,
    pub(super) done: Vec<(Done, Result<(), Error>)>,
    pub(super) failures: Vec<(Vec<Rank>, Error)>,
}

impl Aftermath {
    /// Does it, and is empty then.
    #[inline]
    pub(super) fn settle(&mut self, rank: &RankState, world: &World) {
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
            rank.kick();
        }
        freed.into_iter().for_each(|freed| world.follow(freed));
        if self.told.0 != 0 {
            let told = std::mem::take(&mut self.told);
            told.ranks(world.size()).for_each(|target| world.tell(target));
        }
        if rank.has_later() {
            rank.try_again();
        }
    }
}

/// Ranks to be told, each a bit, those beyond the last bit with others: to be told in vain costs a
/// rank no more than a look.
#[derive(Clone, Copy, Default)]
pub(super) struct Told(u64);

impl Told {
    pub(super) fn add(&mut self, rank: Rank) {
        self.0 |= 1 << (rank.0 % u64::BITS);
    }

    fn ranks(self, size: u32) -> impl Iterator<Item = Rank> {
        let mut left = self.0;
        let next = move || {
            let bit = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            (bit < u64::BITS).then_some(bit)
        };
        std::iter::from_fn(next)
            .flat_map(move |bit| (bit..size).step_by(u64::BITS as usize).map(Rank))
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn whoever_was_sent_something_is_told_and_with_many_ranks_some_others() {
        for size in [1, 2, 64, 65, 130] {
            assert_eq!(Told::default().ranks(size).count(), 0);
            for rank in (0..size).map(Rank) {
                let mut told = Told::default();
                (0..2).for_each(|_| told.add(rank));
                let ranks: Vec<Rank> = told.ranks(size).collect();
                assert!(ranks.contains(&rank), "{rank} of {size} in {ranks:?}");
                assert!(ranks.len() as u32 <= size.div_ceil(64), "{ranks:?}");
                assert!(ranks.iter().all(|told| told.0 < size), "{ranks:?}");
            }
        }
    }
}
