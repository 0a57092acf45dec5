//! The windows of one round, and what is decided about an operation that comes to them.
//!
//! Nothing here locks: the table does.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;

use super::conflicts::Notes;
use super::landing::{Freed, HasLanded, Parked, Post, Together};
use super::{Area, Claim};
use crate::held::Held;

#[derive(Default)]
pub(super) struct RoundWindows {
    /// Whether all windows are declared.
    pub(super) complete: bool,
    /// Whether the sync has ended and only waits for what was admitted to land.
    pub(super) ending: bool,
    pub(super) windows: SmallVec<[Window; 2]>,
    /// Parked until the window that covers them opens, or until all windows are declared.
    pub(super) parked: Vec<Waiting>,
    /// All operations of the round, if they are noted.
    pub(super) notes: Notes,
}

pub(super) struct Window {
    /// Tells it from the others of its round.
    pub(super) number: usize,
    pub(super) area: Area,
    pub(super) phase: Phase,
    pub(super) landing: Vec<InFlight>,
}

#[derive(Default)]
pub(super) enum Phase {
    #[default]
    Declared,
    Open(Box<dyn Held>),
}

/// What is decided about an operation.
pub(super) enum Admission {
    /// It may land in the window at this place.
    Lands(usize),
    /// It is parked, if its source has credit.
    Waits,
    /// Nowhere.
    Refused,
}

pub(super) struct Waiting {
    pub(super) claim: Claim,
    pub(super) operation: Box<dyn Parked>,
}

/// An admitted operation that may not have landed.
pub(super) struct InFlight {
    pub(super) claim: Claim,
    /// Tells it from others while it is being posted outside the lock.
    pub(super) posting: Option<u64>,
}

impl RoundWindows {
    /// The place of the window with this number, which may be new.
    pub(super) fn window(&mut self, number: usize, area: Area) -> usize {
        let known = self.windows.iter().position(|window| window.number == number);
        known.unwrap_or_else(|| {
            let (phase, landing) = (Phase::Declared, Vec::new());
            self.windows.push(Window { number, area, phase, landing });
            self.windows.len() - 1
        })
    }

    /// The window that an operation is for.
    #[inline]
    fn covering(&self, claim: &Claim) -> Option<usize> {
        self.windows.iter().position(|window| window.area.covers(claim))
    }

    /// Decides about an operation. `delayed` is set if it waits although its window is open.
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
                Admission::Waits
            }
            None if self.complete => Admission::Refused,
            None => Admission::Waits,
        }
    }

    /// Takes out what waits and is for no window.
    pub(super) fn take_uncovered(&mut self) -> Vec<Waiting> {
        if self.parked.is_empty() {
            return Vec::new();
        }
        let windows = &self.windows;
        let is_for = |claim: &Claim| windows.iter().any(|window| window.area.covers(claim));
        self.parked.extract_if(.., |waiting| !is_for(&waiting.claim)).collect()
    }

    /// Whether anything waits although its window is open.
    pub(super) fn has_delayed(&self) -> bool {
        let window = |waiting: &Waiting| self.covering(&waiting.claim);
        self.parked.iter().filter_map(window).any(|at| self.windows[at].is_open())
    }

    /// Lands what waits for the window at this place, as far as it may.
    pub(super) fn land_parked(
        &mut self,
        at: usize,
        parked: &mut [usize],
        has_landed: HasLanded<'_>,
        freed: &mut Freed,
    ) {
        let mut next = 0;
        while next < self.parked.len() {
            let claim = self.parked[next].claim;
            let is_for_it =
                self.windows[at].area.covers(&claim) && self.covering(&claim) == Some(at);
            if !is_for_it || !self.windows[at].may_land(&claim, has_landed) {
                next += 1;
                continue;
            }
            let post = self.parked[next].operation.post();
            self.windows[at].note_posted(claim, post, has_landed);
            if post == Post::All {
                freed.lists().posted.push(self.parked.remove(next).operation);
                unpark(parked, &claim, freed);
            } else {
                next += 1;
            }
        }
    }
}

impl Window {
    /// Whether an operation may land that follows one which may.
    #[inline]
    pub(super) fn lands(&self, claim: &Claim) -> bool {
        self.area.covers(claim) && !self.landing.iter().any(|other| other.claim.conflicts(claim))
    }

    pub(super) fn note_landing(&mut self, operations: &impl Together, posted: Range<usize>) {
        let claims = posted.map(|index| operations.claim(index));
        self.landing.extend(claims.map(|claim| InFlight { claim, posting: None }));
    }

    #[inline]
    pub(super) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open(_))
    }

    fn may_land(&mut self, claim: &Claim, has_landed: HasLanded<'_>) -> bool {
        if !self.is_open() {
            return false;
        }
        if !self.landing.is_empty() {
            self.forget_landed(has_landed);
        }
        !self.landing.iter().any(|landing| landing.claim.conflicts(claim))
    }

    pub(super) fn forget_landed(&mut self, has_landed: HasLanded<'_>) {
        self.landing
            .retain(|landing| landing.posting.is_some() || !has_landed(landing.claim.source));
    }

    /// The guard, if nothing that was admitted may still land.
    pub(super) fn close_if_landed(&mut self, has_landed: HasLanded<'_>) -> Option<Box<dyn Held>> {
        self.forget_landed(has_landed);
        if !self.landing.is_empty() {
            return None;
        }
        match std::mem::take(&mut self.phase) {
            Phase::Open(guard) => Some(guard),
            Phase::Declared => None,
        }
    }

    pub(super) fn note_posted(&mut self, claim: Claim, post: Post, has_landed: HasLanded<'_>) {
        if post != Post::Nothing && !has_landed(claim.source) {
            self.landing.push(InFlight { claim, posting: None });
        }
    }
}

pub(super) fn unpark(parked: &mut [usize], claim: &Claim, freed: &mut Freed) {
    parked[claim.source.index()] -= 1;
    let sources = &mut freed.lists().sources;
    if !sources.contains(&claim.source) {
        sources.push(claim.source);
    }
}
