//! Operations as windows see them: something to be posted, parked or refused.

use std::ops::Range;

use smallvec::SmallVec;

use super::Claim;
use crate::held_guard::{GivenUp, HeldGuard};
use crate::numbers::Rank;

/// How much of an operation could be posted; the send queue may be full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Post {
    /// All of it.
    All,
    /// Some of its requests; the next try goes on behind them.
    Some,
    /// Nothing.
    Nothing,
}

/// An operation that may have to wait for its window.
pub(crate) trait Landing: Send {
    /// Posts it.
    fn post(&mut self) -> Post;
    /// Returns whether its issuer looks again soon, and has it back instead of parked.
    #[inline]
    fn is_patient(&self) -> bool {
        false
    }
    /// Keeps it, with everything it borrows, while it is parked.
    fn park(self) -> Box<dyn Parked>
    where
        Self: Sized;
}

/// Short operations of one source and round that land together, as far as they may.
pub(crate) trait Together {
    fn len(&self) -> usize;
    fn claim(&self, index: usize) -> Claim;
    /// Posts some of them: all or nothing.
    fn post(&self, range: Range<usize>) -> Post;
    /// Keeps one while it is parked.
    fn park(&self, index: usize) -> Box<dyn Parked>;
}

/// What became of operations that were to land together, where they were neither posted nor
/// parked.
#[derive(Default)]
pub(crate) struct Rest {
    /// To be tried again.
    pub(crate) retry: SmallVec<[usize; 1]>,
    /// The first that no window covers; the others are done.
    pub(crate) refused: Option<usize>,
}

/// A parked operation.
pub(crate) trait Parked: Send {
    /// Posts it.
    fn post(&mut self) -> Post;
    /// It will not land: its window closed, there is none, or the run has failed.
    fn refuse(self: Box<Self>);
}

/// What became of an operation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome<L> {
    /// It was posted; handed back so that it is dropped outside the lock.
    Posted(L),
    Parked,
    /// The source has as many operations parked here as it may, or no room to post one, or is
    /// patient; it keeps this one and tries again.
    Retry(L),
    /// No window of the round covers it, the round has ended, or the run has failed.
    Refused(L),
}

/// Says whether everything that a rank has posted to this one has landed.
pub(crate) type HasLanded<'a> = &'a dyn Fn(Rank) -> bool;

/// What to do once the lock is released; as a rule nothing, and then it is one word.
#[derive(Default)]
#[must_use = "sources with credit again have to be told"]
pub(crate) struct Freed(Option<Box<Lists>>);

#[derive(Default)]
pub(super) struct Lists {
    /// Sources that have credit again.
    pub(super) sources: SmallVec<[Rank; 2]>,
    /// Operations that were posted from here, to be dropped.
    pub(super) posted: SmallVec<[Box<dyn Parked>; 2]>,
    /// Guards of windows that closed because the run has failed.
    pub(super) guards: Vec<GivenUp>,
}

/// What a round that has ended leaves, to be dropped and followed under no lock.
#[derive(Default)]
#[must_use = "sources with credit again have to be told"]
pub(crate) struct Over {
    /// Of its windows. To drop one may run what waits for its region.
    pub(super) guards: SmallVec<[Box<dyn HeldGuard>; 2]>,
    /// Operations that no window has taken. They have guards, too.
    pub(super) refused: Vec<Box<dyn Parked>>,
    pub(super) freed: Freed,
}

impl Over {
    /// Refuses what was left and releases the regions of the windows.
    #[inline]
    pub(crate) fn release(self) -> Freed {
        self.refused.into_iter().for_each(Parked::refuse);
        drop(self.guards);
        self.freed
    }
}

impl Freed {
    pub(super) fn lists(&mut self) -> &mut Lists {
        self.0.get_or_insert_default()
    }

    #[inline]
    pub(crate) fn is_nothing(&self) -> bool {
        self.0.is_none()
    }

    /// Sources that have credit again.
    pub(crate) fn sources(&self) -> &[Rank] {
        self.0.as_ref().map_or(&[], |lists| lists.sources.as_slice())
    }
}

pub(super) fn outcome_of<L>(post: Post, operation: L) -> Outcome<L> {
    if post == Post::All { Outcome::Posted(operation) } else { Outcome::Retry(operation) }
}
