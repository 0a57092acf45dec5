//! The windows of one round, and the decision about an operation that arrives.
//!
//! This file takes no lock: the table does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;

use super::areas::{Areas, FEW, Index};
use super::conflicts::Notes;
use super::in_flight::InFlight;
use super::landing::{Admitted, EndedRound, Freed, HasLanded, Parked, Post, Together};
use super::{Area, Claim};
use crate::held_guard::HeldGuard;
use crate::numbers::{LaneNumber, Round};

/// The windows of one round. On cache lines of their own, as peers access one round while the owner
/// ends another. Fields that peers usually need come first, on as few lines as possible.
#[derive(Default)]
#[repr(C, align(128))]
pub(super) struct RoundWindows {
    /// `true` once all windows are declared.
    declared: bool,
    /// `true` once the sync only waits for admitted operations to land.
    ending: bool,
    /// Number of windows that are known.
    known: u32,
    /// Windows by position, if they are many.
    index: Option<Arc<Index>>,
    /// Windows by number. Some are kept for the rounds that use this entry next.
    windows: SmallVec<[Window; 2]>,
    /// Operations parked until the window that covers them is known, or until all are declared.
    parked: Vec<Waiting>,
    /// Notes of all operations of the round, if the run checks for conflicts.
    pub(super) notes: Notes,
}

#[derive(Default)]
pub(super) struct Window {
    /// Area of the window; `None` if a later window has opened before this one was declared.
    area: Option<Area>,
    phase: Phase,
    pub(super) in_flight: InFlight,
    /// Operations parked until the window opens, or until those that they overlap have landed.
    parked: Vec<Waiting>,
}

#[derive(Default)]
enum Phase {
    #[default]
    Declared,
    Open(HeldGuard),
}

/// The decision about an operation.
pub(super) enum Admission {
    /// The operation may land in the window with this number.
    Lands(usize),
    /// The operation is parked if its source has credit, for the window with this number if known.
    WaitFlag(Option<usize>),
    /// No window of the round covers the operation.
    Refused,
}

pub(super) struct Waiting {
    pub(super) claim: Claim,
    pub(super) operation: Box<dyn Parked>,
}

impl RoundWindows {
    /// Declares the windows, of which some may be known. Returns parked operations that none
    /// covers. `credits` are the numbers of parked operations by source.
    pub(super) fn declare(&mut self, areas: &mut Areas, credits: &mut [usize]) -> Vec<Waiting> {
        // At once, as each reallocation may wait for another thread that allocates.
        self.windows.reserve(areas.as_slice().len().saturating_sub(self.windows.len()));
        for (number, area) in areas.as_slice().iter().enumerate() {
            self.know(number, *area);
        }
        self.index = areas.take_index();
        self.declared = true;
        if self.parked.is_empty() {
            return Vec::new();
        }
        let mut for_none = Vec::new();
        for waiting in std::mem::take(&mut self.parked) {
            let Some(mut waiting) = self.park_for_window(waiting) else {
                continue;
            };
            // Those that were parked as one may lie in several windows.
            let parts = waiting.operation.split();
            if parts.is_empty() {
                for_none.push(waiting);
                continue;
            }
            credits[waiting.claim.source.index()] += parts.len() - 1;
            let parts = parts.into_iter().map(|(claim, operation)| Waiting { claim, operation });
            for_none.extend(parts.filter_map(|part| self.park_for_window(part)));
        }
        for_none
    }

    /// Keeps an operation that waits for the window that covers it. Returns one that none covers.
    fn park_for_window(&mut self, waiting: Waiting) -> Option<Waiting> {
        let Some(at) = self.covering(&waiting.claim) else {
            return Some(waiting);
        };
        self.windows[at].parked.push(waiting);
        None
    }

    /// Declares the only window. Returns `false` if an operation is parked that it does not cover.
    #[inline]
    pub(super) fn declare_only(&mut self, area: Area) -> bool {
        self.declared |= self.parked.iter().all(|waiting| area.covers(&waiting.claim));
        self.declared
    }

    /// Opens a window with the guard of its region. Not all windows need be declared.
    pub(super) fn open(&mut self, (number, area): (usize, Area), guard: HeldGuard) -> &mut Window {
        self.know(number, area);
        let window = &mut self.windows[number];
        window.phase = Phase::Open(guard);
        if !self.parked.is_empty() {
            let is_for_it = |waiting: &mut Waiting| area.covers(&waiting.claim);
            window.parked.extend(self.parked.extract_if(.., is_for_it));
        }
        window
    }

    fn know(&mut self, number: usize, area: Area) {
        if self.windows.len() <= number {
            self.windows.resize_with(number + 1, Window::default);
        }
        self.windows[number].area = Some(area);
        self.known = self.known.max(number as u32 + 1);
    }

    /// Returns the windows by number, as far as they are known.
    #[inline]
    pub(super) fn windows(&mut self) -> &mut [Window] {
        &mut self.windows[..self.known as usize]
    }

    /// Returns the number of the window that covers an operation, if known.
    #[inline]
    pub(super) fn covering(&self, claim: &Claim) -> Option<usize> {
        match &self.index {
            Some(index) if claim.index < claim.end => index.covering(claim),
            _ => self.windows[..self.known as usize].iter().position(|window| window.covers(claim)),
        }
    }

    /// Counts the operations from number `first` on that may land one after the other, of which the
    /// first one may in window `at`.
    #[inline]
    pub(super) fn count_landing(
        &mut self,
        mut at: usize,
        operations: &impl Together,
        first: usize,
        has_landed: HasLanded<'_>,
    ) -> usize {
        let mut next = first + 1;
        while next < operations.len() {
            let claim = operations.claim(next);
            if !self.windows[at].covers(&claim) {
                match self.covering(&claim) {
                    Some(other) => at = other,
                    None => break,
                }
            }
            if !self.windows[at].may_land(&claim, has_landed) {
                break;
            }
            next += 1;
        }
        next - first
    }

    /// Counts the operations from number `first` on that may be parked as one, of which the first one waits for
    /// window `at`, or for the windows to be declared. Returns the claim of all of them, too.
    #[inline]
    pub(super) fn count_as_one(
        &self,
        at: Option<usize>,
        operations: &impl Together,
        first: usize,
    ) -> (usize, Claim) {
        let (mut all, mut next) = (operations.claim(first), first + 1);
        // In a window that is open, each waits for others to land.
        if !operations.parks_as_one() || at.is_some_and(|at| self.windows[at].is_open()) {
            return (1, all);
        }
        while next < operations.len() {
            let claim = operations.claim(next);
            let longer = Claim { end: claim.end, ..all };
            let waits = match at {
                Some(at) => self.windows[at].covers(&longer),
                None => self.covering(&claim).is_none(),
            };
            if (claim.slot, claim.index) != (all.slot, all.end) || !waits {
                break;
            }
            (all, next) = (longer, next + 1);
        }
        (next - first, all)
    }

    /// Decides about an operation. Sets `delayed` if it waits although its window is open.
    #[inline]
    pub(super) fn admit(
        &mut self,
        claim: &Claim,
        has_landed: HasLanded<'_>,
        delayed: &AtomicBool,
    ) -> Admission {
        match self.covering(claim).filter(|_| !self.ending) {
            Some(at) if self.windows[at].may_land(claim, has_landed) => Admission::Lands(at),
            Some(at) => {
                if self.windows[at].is_open() {
                    delayed.store(true, Ordering::Relaxed);
                }
                Admission::WaitFlag(Some(at))
            }
            None if self.declared => Admission::Refused,
            None => Admission::WaitFlag(None),
        }
    }

    /// Keeps an operation that waits for window `at`, or for the windows to be declared.
    pub(super) fn park(&mut self, at: Option<usize>, waiting: Waiting) {
        match at {
            Some(at) => self.windows[at].parked.push(waiting),
            None => self.parked.push(waiting),
        }
    }

    /// Notes operations that were posted together and may not have landed.
    #[cold]
    pub(super) fn note_flying(
        &mut self,
        claims: impl Iterator<Item = Claim>,
        has_landed: HasLanded<'_>,
    ) {
        for claim in claims {
            if let Some(at) = self.covering(&claim) {
                self.windows[at].in_flight.add(&claim, has_landed);
            }
        }
    }

    /// Returns `true` if an operation waits although its window is open.
    pub(super) fn has_delayed(&mut self) -> bool {
        self.windows().iter().any(Window::has_delayed)
    }

    /// Takes all parked operations.
    pub(super) fn take_parked(&mut self) -> Vec<Waiting> {
        let mut parked = std::mem::take(&mut self.parked);
        self.windows().iter_mut().for_each(|window| parked.append(&mut window.parked));
        parked
    }

    /// Returns `true` if the sync only waits for admitted operations to land.
    pub(super) fn is_ending(&self) -> bool {
        self.ending
    }

    /// Returns `true` if every admitted operation has landed, so that the windows may close. From
    /// now on no operation is admitted.
    pub(super) fn may_end(&mut self, has_landed: HasLanded<'_>) -> bool {
        self.ending = true;
        let has_ended = |window: &mut Window| {
            window.in_flight.is_empty() || window.in_flight.forget_landed(has_landed)
        };
        // For all windows, so that the next call finds the others empty.
        self.windows().iter_mut().fold(true, |all, window| all & has_ended(window))
    }

    /// Empties the entry for a later round: the guards of the windows and parked operations move to
    /// `over`.
    pub(super) fn empty(&mut self, parked: &mut [usize], over: &mut EndedRound) {
        let EndedRound { guards, refused, freed } = over;
        let mut refuse = |waiting: Waiting| {
            unpark(parked, &waiting.claim, freed);
            refused.push(waiting.operation);
        };
        if !self.parked.is_empty() {
            self.parked.drain(..).for_each(&mut refuse);
        }
        guards.reserve(self.known as usize);
        for window in self.windows() {
            window.area = None;
            if let Phase::Open(guard) = std::mem::take(&mut window.phase) {
                guards.push(guard);
            }
            if !window.parked.is_empty() {
                window.parked.drain(..).for_each(&mut refuse);
            }
        }
        if self.windows.len() > FEW {
            self.windows.truncate(FEW);
            self.index = None;
        }
        self.notes.clear();
        (self.declared, self.ending, self.known) = (false, false, 0);
    }
}

impl Window {
    #[inline]
    fn covers(&self, claim: &Claim) -> bool {
        self.area.is_some_and(|area| area.covers(claim))
    }

    #[inline]
    pub(super) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open(_))
    }

    /// Returns `true` if an operation waits although the window is open.
    pub(super) fn has_delayed(&self) -> bool {
        self.is_open() && !self.parked.is_empty()
    }

    /// Iterates over the claims of operations that wait although the window is open.
    pub(super) fn delayed(&self) -> impl Iterator<Item = &Claim> {
        let delayed = if self.is_open() { self.parked.as_slice() } else { &[] };
        delayed.iter().map(|waiting| &waiting.claim)
    }

    /// Returns `true` if the window is open and nothing is in flight in it, but perhaps for an operation
    /// that [`IdleWindows`](super::idle_windows::IdleWindows) keep.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.is_open() && self.in_flight.is_empty() && self.parked.is_empty()
    }

    #[inline]
    fn may_land(&mut self, claim: &Claim, has_landed: HasLanded<'_>) -> bool {
        self.is_open() && self.in_flight.admits(claim, has_landed)
    }

    pub(super) fn area(&self) -> Option<Area> {
        self.area
    }

    /// Returns `true` if an operation waits for the window whose claim is one of these.
    pub(super) fn is_awaited_by(&self, is_one: impl Fn(&Claim) -> bool) -> bool {
        self.parked.iter().any(|waiting| is_one(&waiting.claim))
    }

    /// Admits parked operations, as far as they may land: quick ones are posted, others leave the
    /// window to be posted. `credits` are the numbers of parked operations by source.
    #[inline]
    pub(super) fn admit_parked(
        &mut self,
        at: (LaneNumber, Round, usize),
        credits: &mut [usize],
        has_landed: HasLanded<'_>,
        freed: &mut Freed,
    ) {
        if self.has_delayed() {
            self.post_quick(credits, has_landed, freed);
            if !self.parked.is_empty() {
                self.try_parked(at, has_landed, freed);
            }
        }
    }

    /// Posts quick operations, up to the first one that is not quick or has to wait.
    fn post_quick(&mut self, credits: &mut [usize], has_landed: HasLanded<'_>, freed: &mut Freed) {
        let Window { in_flight, parked, .. } = self;
        let mut try_to_post = |Waiting { claim, operation }: &mut Waiting| {
            if !operation.is_quick() || !in_flight.admits(claim, has_landed) {
                return false;
            }
            let post = operation.post();
            in_flight.note_posted(claim, post, has_landed);
            post == Post::All
        };
        let waits = parked.iter_mut().position(|waiting| !try_to_post(waiting));
        for waiting in parked.drain(..waits.unwrap_or(parked.len())) {
            unpark(credits, &waiting.claim, freed);
            freed.lists().posted.push(waiting.operation);
        }
    }

    #[cold]
    fn try_parked(
        &mut self,
        (lane, round, window): (LaneNumber, Round, usize),
        has_landed: HasLanded<'_>,
        freed: &mut Freed,
    ) {
        let Window { in_flight, parked, .. } = self;
        let mut may_land = |waiting: &Waiting| in_flight.admits(&waiting.claim, has_landed);
        let operations = if parked.iter().all(&mut may_land) {
            std::mem::take(parked)
        } else {
            parked.extract_if(.., |waiting| may_land(waiting)).collect()
        };
        if !operations.is_empty() {
            in_flight.begin_admitted(operations.iter().map(|waiting| &waiting.claim));
            freed.lists().admitted.push(Admitted { lane, round, window, operations });
        }
    }

    /// Parks operations again that found no room to be posted, before those that came later.
    /// `room` is an empty list.
    pub(super) fn park_again(&mut self, operations: Vec<Waiting>, room: Vec<Waiting>) {
        if self.parked.capacity() == 0 {
            self.parked = room;
        }
        if !operations.is_empty() {
            self.parked.splice(..0, operations);
        }
    }

    /// Returns the guard, if every admitted operation has landed.
    pub(super) fn close_if_landed(&mut self, has_landed: HasLanded<'_>) -> Option<HeldGuard> {
        if !self.in_flight.forget_landed(has_landed) {
            return None;
        }
        match std::mem::take(&mut self.phase) {
            Phase::Open(guard) => Some(guard),
            Phase::Declared => None,
        }
    }
}

pub(super) fn unpark(credits: &mut [usize], claim: &Claim, freed: &mut Freed) {
    // A failure of the run has returned the credit of all.
    let count = &mut credits[claim.source.index()];
    *count = count.saturating_sub(1);
    let sources = &mut freed.lists().sources;
    if !sources.contains(&claim.source) {
        sources.push(claim.source);
    }
}
