//! The traits of operations that windows post, park or refuse, and the outcomes of that.

use std::ops::Range;

use ibverbs_sim::{RemoteAddress, WordUpdate};
use smallvec::SmallVec;

use super::Claim;
use super::round::Waiting;
use crate::held_guard::{HeldGuard, PoisonOnDrop};
use crate::numbers::{ArrivalNumber, LaneNumber, Rank, Round, TicketNumber};

/// The part of an operation that could be posted; the send queue may be full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Post {
    /// All requests.
    All,
    /// Some of the requests; a retry continues behind them.
    Some,
    /// No request.
    Nothing,
}

/// An operation that may have to wait for its window.
pub(crate) trait Landing: Send {
    /// Posts the operation.
    fn post(&mut self) -> Post;
    /// Carries the operation out at once, if the device need not announce it to the target. Returns
    /// `false` if the operation is to be posted.
    #[inline]
    fn carry_out(&mut self) -> bool {
        false
    }
    /// Sets the number with which the operation announces itself, if that is no round.
    fn admit(&mut self, _number: ArrivalNumber) {}
    /// Returns `true` if the issuer polls the window, and gets the operation back instead of
    /// parked.
    #[inline]
    fn is_patient(&self) -> bool {
        false
    }
    /// Returns `true` if the operation comes again, so that it was noted before, to find conflicts.
    fn is_noted(&mut self) -> bool {
        false
    }
    /// Notes that a remote target has no credit for the operation. A message announces when it may have some.
    fn note_no_credit(&mut self) {}
    /// Returns `true` if the operation is the request of a remote rank for a window.
    #[inline]
    fn is_request(&self) -> bool {
        false
    }
    /// Posts the operation, which announces itself by a ticket of a remote target.
    fn post_by_ticket(&mut self, _ticket: TicketNumber) -> Post {
        Post::Nothing
    }
    /// Returns the bytes of a short put and their remote address, if they may travel with the claim
    /// to a target in another process.
    fn eager_bytes(&self) -> Option<(RemoteAddress, &[u8])> {
        None
    }
    /// Returns the change of an atomic and its remote address, if they may travel with the claim to a target in
    /// another process.
    fn eager_update(&self) -> Option<(RemoteAddress, WordUpdate)> {
        None
    }
    /// Records in the trace that the bytes or the change are about to be sent with the claim.
    fn trace_eager_send(&mut self) {}
    /// Notes that the bytes were sent with the claim: the operation has been posted.
    fn note_sent_eagerly(&mut self) {}
    /// Converts the operation, with everything it borrows, to be parked.
    fn park(self) -> Box<dyn Parked>
    where
        Self: Sized;
}

/// Short operations of one source and round that land together, as far as they may.
pub(crate) trait Together {
    fn len(&self) -> usize;
    fn claim(&self, index: usize) -> Claim;
    /// Posts a range of the operations: all or nothing.
    fn post(&self, range: Range<usize>) -> Post;
    /// Returns `true` if operations whose elements lie side by side may be parked as one.
    #[inline]
    fn parks_as_one(&self) -> bool {
        false
    }
    /// Converts a range of the operations, to be parked: one of them, or several as one.
    fn park(&self, range: Range<usize>) -> Box<dyn Parked>;
}

/// Short puts that may travel together, with their claims, to a target in another process.
pub(crate) trait TravelTogether: Together {
    /// Calls `visit` with the remote address and the bytes of a put.
    fn with_bytes(&self, index: usize, visit: impl FnOnce(RemoteAddress, &[u8]));
    /// Records in the trace that a range of the puts is about to be sent.
    fn trace_send(&self, range: Range<usize>);
    /// Notes that a range of the puts was sent.
    fn note_sent(&self, _range: Range<usize>) {}
}

/// The outcome of a [`Together`]: its operations that were neither posted nor parked.
#[derive(Default)]
pub(crate) struct Rest {
    /// `true` if operations were parked.
    pub(crate) has_parked: bool,
    /// Operations to be retried.
    pub(crate) retry: SmallVec<[usize; 1]>,
    /// The first operation that no window covers, which fails the run.
    pub(crate) refused: Option<usize>,
    /// Deferred actions of the windows.
    pub(crate) freed: Freed,
}

/// A parked operation.
pub(crate) trait Parked: Send {
    /// Posts the operation.
    fn post(&mut self) -> Post;
    /// Returns `true` if the operation may be posted under a lock: its post is short, and calls no
    /// code of the program.
    fn is_quick(&self) -> bool {
        false
    }
    /// Sets the number with which the operation announces itself, if that is no round.
    fn admit(&mut self, _number: ArrivalNumber) {}
    /// Makes the operation announce itself by a ticket of its target, which is remote.
    fn use_ticket(&mut self, _ticket: TicketNumber) {}
    /// Stores the value that an atomic has found, which its target has carried out: the drop of the operation ends it.
    /// Returns `false`, without any effect, of another operation.
    fn take_result(&mut self, _value: u64) -> bool {
        false
    }
    /// Takes apart operations that were parked as one, as no window covers all of them: the parts take its place, and
    /// it is dropped. Returns none if it is one operation.
    fn split(&mut self) -> Vec<(Claim, Box<dyn Parked>)> {
        Vec::new()
    }
    /// Fails the operation: its window has closed or does not exist, or the run has failed.
    fn refuse(self: Box<Self>);
}

/// The outcome of an operation that was to land.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome<L> {
    /// The operation was posted; returned so that it is dropped outside the lock.
    Posted(L),
    /// The operation was parked.
    Parked,
    /// The source has no credit to park one more operation, or no room to post one, or polls; it
    /// keeps the operation and retries.
    Retry(L),
    /// No window of the round covers it, the round has ended, or the run has failed.
    Refused(L),
}

/// A ticket that its source has to return, unless it has used it.
pub(crate) type Recalled = (Rank, TicketNumber);

/// A function that returns `true` if every operation that a rank has posted to this one has landed.
pub(crate) type HasLanded<'a> = &'a dyn Fn(Rank) -> bool;

/// Deferred actions of a window table, once its lock is released. Usually none: then it is one
/// word.
#[derive(Default)]
#[must_use = "admitted operations have to be posted, and sources with credit again have to retry"]
pub(crate) struct Freed(Option<Box<Lists>>);

#[derive(Default)]
pub(super) struct Lists {
    /// Parked operations that were admitted, to be posted.
    pub(super) admitted: SmallVec<[Admitted; 1]>,
    /// Sources that have credit again.
    pub(super) sources: SmallVec<[Rank; 2]>,
    /// Operations that were posted from here, to be dropped.
    pub(super) posted: SmallVec<[Box<dyn Parked>; 2]>,
    /// Guards of windows that closed because the run has failed.
    pub(super) guards: Vec<PoisonOnDrop>,
    /// Tickets to be recalled.
    pub(super) recalled: Vec<Recalled>,
}

/// The reason why a round cannot end yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unended {
    /// An admitted operation has not landed, which nothing announces.
    Landing,
    /// Tickets are out, which their puts or their sources end by a message.
    Tickets,
}

/// Operations that were parked and may land, on their way out of the table. They count as being
/// posted, so their window stays open.
pub(super) struct Admitted {
    pub(super) lane: LaneNumber,
    pub(super) round: Round,
    /// Number of their window.
    pub(super) window: usize,
    pub(super) operations: Vec<Waiting>,
}

/// Deferred actions of a round that has ended, for which no lock may be held.
#[derive(Default)]
#[must_use = "sources with credit again have to retry"]
pub(crate) struct EndedRound {
    /// Guards of its windows. The drop of one may run a task that waits for its region.
    pub(super) guards: SmallVec<[HeldGuard; 2]>,
    /// Operations that no window has taken. They hold guards, too.
    pub(super) refused: Vec<Box<dyn Parked>>,
    pub(super) freed: Freed,
}

impl EndedRound {
    /// Refuses the operations and releases the regions of the windows.
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

    /// Adds tickets to be recalled.
    pub(super) fn recall(&mut self, recalled: Vec<Recalled>) {
        if !recalled.is_empty() {
            self.lists().recalled.extend(recalled);
        }
    }

    #[inline]
    pub(crate) fn is_nothing(&self) -> bool {
        self.0.is_none()
    }

    /// Returns `true` if operations were posted, sources have credit again, or guards are to be
    /// released.
    pub(crate) fn has_progress(&self) -> bool {
        self.0.as_ref().is_some_and(|lists| {
            !(lists.posted.is_empty() && lists.sources.is_empty() && lists.guards.is_empty())
        })
    }

    /// Takes the operations to be posted.
    pub(super) fn take_admitted(&mut self) -> SmallVec<[Admitted; 1]> {
        self.0.as_mut().map(|lists| std::mem::take(&mut lists.admitted)).unwrap_or_default()
    }

    /// Returns the tickets to be recalled.
    pub(crate) fn recalled(&self) -> &[Recalled] {
        self.0.as_ref().map_or(&[], |lists| lists.recalled.as_slice())
    }

    /// Returns the sources that have credit again.
    pub(crate) fn sources(&self) -> &[Rank] {
        self.0.as_ref().map_or(&[], |lists| lists.sources.as_slice())
    }
}

pub(super) fn outcome_of<L>(post: Post, operation: L) -> Outcome<L> {
    if post == Post::All { Outcome::Posted(operation) } else { Outcome::Retry(operation) }
}
