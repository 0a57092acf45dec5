//! The part of a window table that its lock guards.

use std::iter;
use std::sync::Arc;

use smallvec::SmallVec;

use super::Claim;
use super::idle_windows::IdleWindows;
use super::landing::{HasLanded, Post};
use super::round::{RoundWindows, Window};
use super::tickets::{TicketOut, Tickets};
use crate::numbers::{LaneNumber, Round};
use crate::rounds::{MOST_AHEAD, Rounds};

/// Rounds by lane.
pub(super) type Lanes = SmallVec<[Rounds<RoundWindows>; 1]>;

/// The state of a window table. The field that posters need comes first, beside the lock.
#[derive(Default)]
#[repr(C)]
pub(super) struct State {
    pub(super) idle: IdleWindows,
    /// `true` if an operation of a peer came early, and was returned, since a window last opened.
    pub(super) is_awaited: bool,
    /// Rounds by lane; the first lane lies beside the lock.
    pub(super) lanes: Lanes,
    /// Number of parked operations by source, up to the last one that had any; those that were parked as one are one.
    pub(super) parked: Vec<usize>,
    pub(super) tickets: Tickets,
    /// Reason of the failure after which nothing lands any more.
    pub(super) failed: Option<Arc<str>>,
}

impl State {
    /// Moves the operation that is being posted in an idle window of a round to the operations in flight
    /// of that window.
    #[inline]
    pub(super) fn note_posting(&mut self, lane: LaneNumber, round: Round) {
        if self.idle.round_of_posting() == Some((lane, round)) {
            self.note_posting_slow(lane, round);
        }
    }

    #[cold]
    fn note_posting_slow(&mut self, lane: LaneNumber, round: Round) {
        let posting = self.idle.take_posting();
        self.idle.forget(lane, round);
        if let Some((at, claim)) = posting
            && let Some(window) = self.window(lane, round, at)
        {
            window.in_flight.begin_to_post(&claim);
        }
    }

    /// Notes an operation that an idle window has admitted, as far as it was posted and has not
    /// landed.
    #[inline]
    pub(super) fn note_posted(
        &mut self,
        at: (LaneNumber, Round, usize),
        claim: Claim,
        post: Post,
        has_landed: HasLanded<'_>,
    ) {
        if post != Post::Nothing && !has_landed(claim.source) {
            self.note_in_flight(at, iter::once(claim), has_landed);
        }
    }

    /// Notes operations that an idle window has admitted and that have not landed.
    #[cold]
    pub(super) fn note_in_flight(
        &mut self,
        (lane, round, at): (LaneNumber, Round, usize),
        claims: impl Iterator<Item = Claim>,
        has_landed: HasLanded<'_>,
    ) {
        self.idle.forget(lane, round);
        if let Some(window) = self.window(lane, round, at) {
            claims.for_each(|claim| window.in_flight.add(&claim, has_landed));
        }
    }

    /// Returns `true` if window `at` of a round admits all that it covers.
    pub(super) fn is_idle(&mut self, lane: LaneNumber, round: Round, at: usize) -> bool {
        self.failed.is_none() && self.window(lane, round, at).is_some_and(|window| window.is_idle())
    }

    /// Returns window `at` of a round.
    fn window(&mut self, lane: LaneNumber, round: Round, at: usize) -> Option<&mut Window> {
        let windows = round_of(&mut self.lanes, lane, round, MOST_AHEAD)?;
        windows.windows().get_mut(at)
    }
}

/// Returns the windows of a round that has not ended and is less than `most_ahead` rounds ahead.
#[inline(always)]
pub(super) fn round_of(
    lanes: &mut Lanes,
    lane: LaneNumber,
    round: Round,
    most_ahead: u64,
) -> Option<&mut RoundWindows> {
    if lanes.len() <= lane.index() {
        lanes.resize_with(lane.index() + 1, Rounds::default);
    }
    lanes[lane.index()].entry(round, most_ahead, RoundWindows::default)
}

/// Ends a ticket in its window, and returns the window.
pub(super) fn end_in_window<'l>(lanes: &'l mut Lanes, out: &TicketOut) -> Option<&'l Window> {
    let windows = round_of(lanes, out.lane, out.round, MOST_AHEAD)?.windows();
    let window = windows.get_mut(out.window)?;
    window.in_flight.end_to_post(&out.claim);
    Some(window)
}
