//! Open windows in which nothing is in flight, beside the lock of the table.
//!
//! An operation that one of them covers lands without the windows of its round being read, so its poster
//! takes one cache line from the target: that of the lock. A window is added as it opens, unless it gives tickets. It is
//! removed, for good, with the other ones of its round: when an operation in one of them was posted
//! and has not been carried out at once, or is being posted while another one comes; when the round
//! ends; and when the run fails.
//!
//! This table keeps one of the operations that are being posted outside the lock, at most, instead of
//! its window, and as long as it does no window is idle. A thread that reads the operations in flight
//! of a round moves the operation to them first.

use std::ops::Range;

use super::area::{Area, Claim, Kind};
use super::landing::Together;
use crate::numbers::{LaneNumber, Rank, Round};

/// The idle windows of a table, as far as there is room. The first one is on the cache line of the lock,
/// the second one mostly on the next, which processors fetch with it.
#[derive(Default)]
#[repr(C)]
pub(super) struct IdleWindows {
    posting: Option<Posting>,
    windows: [Option<IdleWindow>; 2],
}

/// An idle window of consecutive elements.
struct IdleWindow {
    round: Round,
    lane: LaneNumber,
    is_written: bool,
    /// Number of the window in its round.
    number: u16,
    slot: u32,
    first: u32,
    end: u32,
}

/// An operation that is being posted.
struct Posting {
    /// Index of its window in [`IdleWindows::windows`].
    entry: u8,
    source: Rank,
    first: u32,
    end: u32,
}

impl IdleWindows {
    /// Returns the number of the idle window that covers an operation.
    #[inline]
    pub(super) fn covering(&self, lane: LaneNumber, round: Round, claim: &Claim) -> Option<usize> {
        self.find(lane, round, claim).map(|window| usize::from(window.number))
    }

    #[inline]
    fn find(&self, lane: LaneNumber, round: Round, claim: &Claim) -> Option<&IdleWindow> {
        let covers = |window: &&IdleWindow| window.is_of(lane, round) && window.covers(claim);
        self.windows.iter().flatten().find(covers).filter(|_| self.posting.is_none())
    }

    /// Returns the operations from number `first` on that follow each other in one idle window, with
    /// the number of the window.
    #[inline]
    pub(super) fn covered_from(
        &self,
        first: usize,
        lane: LaneNumber,
        round: Round,
        operations: &impl Together,
    ) -> Option<(usize, Range<usize>)> {
        let mut rest = first..operations.len();
        let window = self.find(lane, round, &operations.claim(rest.next()?))?;
        let end = rest.find(|index| !window.covers(&operations.claim(*index)));
        Some((usize::from(window.number), first..end.unwrap_or(operations.len())))
    }

    /// Keeps an operation that is about to be posted in idle window `at`, which covers it.
    #[inline]
    pub(super) fn begin_to_post(&mut self, at: (LaneNumber, Round, usize), claim: &Claim) {
        let is_it = |window: &Option<IdleWindow>| window.as_ref().is_some_and(|w| w.is(at));
        let entry = self.windows.iter().position(is_it).unwrap_or_default() as u8;
        let (first, end) = (claim.index as u32, claim.end as u32);
        self.posting = Some(Posting { entry, source: claim.source, first, end });
    }

    /// Ends the posting of an operation in window `at`. Returns `false` if it is not kept here, or no
    /// more.
    #[inline]
    pub(super) fn end_to_post(&mut self, at: (LaneNumber, Round, usize)) -> bool {
        let windows = &self.windows;
        let is_it = |posting: &mut Posting| {
            windows[usize::from(posting.entry)].as_ref().is_some_and(|window| window.is(at))
        };
        self.posting.take_if(is_it).is_some()
    }

    /// Returns the lane and round of the operation that is being posted.
    #[inline]
    pub(super) fn round_of_posting(&self) -> Option<(LaneNumber, Round)> {
        let window = self.windows[usize::from(self.posting.as_ref()?.entry)].as_ref()?;
        Some((window.lane, window.round))
    }

    /// Takes the operation that is being posted, with the number of its window.
    pub(super) fn take_posting(&mut self) -> Option<(usize, Claim)> {
        let Posting { entry, source, first, end } = self.posting.take()?;
        let IdleWindow { is_written, number, slot, .. } =
            *self.windows[usize::from(entry)].as_ref()?;
        let kind = if is_written { Kind::Write } else { Kind::Read };
        let (index, end) = (u64::from(first), u64::from(end));
        let claim = Claim { source, slot, index, end, rows: 1, stride: 0, kind, raw: false };
        Some((usize::from(number), claim))
    }

    /// Adds a window of a round, if there is room and its elements are consecutive.
    #[inline]
    pub(super) fn add(&mut self, (lane, round, number): (LaneNumber, Round, usize), area: &Area) {
        if let Some(entry) = self.windows.iter_mut().find(|entry| entry.is_none()) {
            *entry = IdleWindow::new(lane, round, number, area);
        }
    }

    /// Removes the windows of a round. No operation is being posted in them.
    #[inline]
    pub(super) fn forget(&mut self, lane: LaneNumber, round: Round) {
        debug_assert!(self.round_of_posting() != Some((lane, round)), "it would be forgotten");
        for entry in &mut self.windows {
            entry.take_if(|window| window.is_of(lane, round));
        }
    }

    /// Removes all windows.
    pub(super) fn forget_all(&mut self) {
        *self = IdleWindows::default();
    }
}

impl IdleWindow {
    /// Returns the entry of a window. `None` if its elements are not consecutive, or their numbers
    /// too large.
    #[inline]
    fn new(lane: LaneNumber, round: Round, number: usize, area: &Area) -> Option<Self> {
        let (elements, number) = (area.consecutive()?, number.try_into().ok()?);
        let (first, end) = (elements.start.try_into().ok()?, elements.end.try_into().ok()?);
        let (slot, is_written) = (area.slot, area.kind.changes());
        Some(IdleWindow { round, lane, is_written, number, slot, first, end })
    }

    #[inline]
    fn is_of(&self, lane: LaneNumber, round: Round) -> bool {
        (self.round, self.lane) == (round, lane)
    }

    #[inline]
    fn is(&self, (lane, round, number): (LaneNumber, Round, usize)) -> bool {
        self.is_of(lane, round) && usize::from(self.number) == number
    }

    #[inline]
    fn covers(&self, claim: &Claim) -> bool {
        claim.is_consecutive()
            && (claim.slot, claim.kind.changes()) == (self.slot, self.is_written)
            && u64::from(self.first) <= claim.index
            && claim.end <= u64::from(self.end)
    }
}
