//! The windows of one rank, by lane and round, under one lock.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crossbeam_utils::CachePadded;
use talpf_primitives::Mutex;

use super::landing::{
    EndedRound, HasLanded, Landing, Outcome, Post, Rest, Together, Unended, outcome_of,
};
use super::round::{Admission, Waiting, Window, unpark};
use super::state::{State, end_in_window, round_of};
use super::{Areas, Claim, Freed};
use crate::held_guard::PoisonOnDrop;
use crate::numbers::{LaneNumber, Rank, Round};
use crate::rounds::{MOST_AHEAD, Rounds};

/// The windows of one rank.
pub(crate) struct WindowTable {
    credits: usize,
    /// Sources that the table limits to their credit.
    limited: Range<u32>,
    /// `true` if operations are noted, to find conflicts.
    pub(super) notes: bool,
    /// Largest number of rounds that peers may be ahead.
    pub(super) most_ahead: u64,
    /// Hint that is set while an operation is parked for a window that is open: it waits for another
    /// one to land, or for room to be posted. On a cache line of its own, as every pass reads it.
    delayed: CachePadded<AtomicBool>,
    /// Number of times that a window has opened while a peer waited for one, wrapping. Changed under
    /// the lock. On a cache line of its own, as peers poll it.
    pub(super) opened: CachePadded<AtomicU32>,
    /// Begins a cache line, as peers come here with every put.
    pub(super) state: CachePadded<Mutex<State>>,
}

impl WindowTable {
    /// Makes a table for `ranks` sources with `credits` parked operations each.
    pub(crate) fn new(ranks: u32, credits: usize) -> Self {
        let state = State::default();
        let (notes, most_ahead) = (false, MOST_AHEAD);
        WindowTable {
            credits,
            limited: 0..ranks,
            notes,
            most_ahead,
            delayed: CachePadded::default(),
            opened: CachePadded::default(),
            state: CachePadded::new(Mutex::new(state)),
        }
    }

    /// Sets the sources whose credit is limited here; others have all that they ask for.
    pub(crate) fn limiting(self, limited: Range<u32>) -> Self {
        WindowTable { limited, ..self }
    }

    /// Sets whether operations are noted, for [`WindowTable::conflict`].
    pub(crate) fn noting(self, notes: bool) -> Self {
        WindowTable { notes, ..self }
    }

    /// Sets the number of rounds that peers may be ahead of this rank.
    pub(crate) fn for_peers_ahead(self, most_ahead: u64) -> Self {
        WindowTable { most_ahead, ..self }
    }

    /// Posts or parks an operation of a peer that arrives, or returns it.
    ///
    /// A `quick` operation is posted under the lock.
    #[inline]
    pub(crate) fn land<L: Landing>(
        &self,
        lane: LaneNumber,
        round: Round,
        claim: Claim,
        quick: bool,
        mut operation: L,
        has_landed: HasLanded<'_>,
    ) -> (Outcome<L>, Freed) {
        let mut state = self.state.lock();
        if operation.is_request() && !self.notes {
            state.tickets.note_asked(lane, &claim);
        }
        if let Some(at) = state.idle.covering(lane, round, &claim) {
            debug_assert!(state.is_idle(lane, round, at), "the entry is of an idle window");
            let at = (lane, round, at);
            if quick {
                let post = operation.post();
                state.note_posted(at, claim, post, has_landed);
                return (outcome_of(post, operation), Freed::default());
            }
            state.idle.begin_to_post(at, &claim);
            drop(state);
            return self.post_outside(at, claim, operation, has_landed);
        }
        state.note_posting(lane, round);
        let State { idle, is_awaited, lanes, parked, tickets, failed } = &mut *state;
        let windows = round_of(lanes, lane, round, self.most_ahead);
        let Some(windows) = windows.filter(|_| failed.is_none()) else {
            return (Outcome::Refused(operation), Freed::default());
        };
        if self.notes && !operation.is_noted() {
            windows.notes.add(claim);
        }
        let at = match windows.admit(&claim, has_landed, &self.delayed) {
            Admission::Lands(at) => at,
            Admission::WaitFlag(_) if operation.is_patient() => {
                *is_awaited = true;
                return (Outcome::Retry(operation), Freed::default());
            }
            Admission::WaitFlag(at) => {
                let mut freed = Freed::default();
                if !tickets.are_back() {
                    freed.recall(tickets.recall_for(lane, round, &claim));
                }
                let outcome = if self.has_credit(parked, claim.source) {
                    windows.park(at, Waiting { claim, operation: operation.park() });
                    Outcome::Parked
                } else {
                    Outcome::Retry(operation)
                };
                return (outcome, freed);
            }
            Admission::Refused => return (Outcome::Refused(operation), Freed::default()),
        };
        let window = &mut windows.windows()[at];
        if quick {
            let post = operation.post();
            window.in_flight.note_posted(&claim, post, has_landed);
            if !window.is_idle() {
                idle.forget(lane, round);
            }
            return (outcome_of(post, operation), Freed::default());
        }
        window.in_flight.begin_to_post(&claim);
        idle.forget(lane, round);
        drop(state);
        self.post_outside((lane, round, at), claim, operation, has_landed)
    }

    /// Posts an operation that window `at` has admitted and notes as being posted. The caller holds no lock.
    #[inline]
    fn post_outside<L: Landing>(
        &self,
        at: (LaneNumber, Round, usize),
        claim: Claim,
        mut operation: L,
        has_landed: HasLanded<'_>,
    ) -> (Outcome<L>, Freed) {
        let post = operation.post();
        let (mut state, mut freed) = (self.state.lock(), Freed::default());
        if state.idle.end_to_post(at) {
            state.note_posted(at, claim, post, has_landed);
            return (outcome_of(post, operation), freed);
        }
        let State { lanes, parked, .. } = &mut *state;
        let (lane, round, number) = at;
        let windows = round_of(lanes, lane, round, MOST_AHEAD);
        if let Some(window) = windows.and_then(|windows| windows.windows().get_mut(number)) {
            window.in_flight.end_to_post(&claim);
            window.in_flight.note_posted(&claim, post, has_landed);
            window.admit_parked(at, parked, has_landed, &mut freed);
        }
        drop(state);
        (outcome_of(post, operation), freed)
    }

    /// Posts or parks short operations of one source that arrive together. Those that may land are
    /// posted under the lock, as many at a time as follow each other; the others are parked, those
    /// side by side as one with one credit if they may be, or returned.
    pub(crate) fn land_together(
        &self,
        lane: LaneNumber,
        round: Round,
        operations: &impl Together,
        has_landed: HasLanded<'_>,
    ) -> Rest {
        let (mut rest, mut next) = (Rest::default(), 0);
        let mut state = self.state.lock();
        while let Some((at, run)) = state.idle.covered_from(next, lane, round, operations) {
            debug_assert!(state.is_idle(lane, round, at), "the entry is of an idle window");
            next = run.end;
            match operations.post(run.clone()) {
                Post::All if has_landed(operations.claim(run.start).source) => {}
                Post::All => {
                    let claims = run.map(|index| operations.claim(index));
                    state.note_in_flight((lane, round, at), claims, has_landed);
                }
                _ => rest.retry.extend(run),
            }
        }
        if next == operations.len() {
            return rest;
        }
        state.note_posting(lane, round);
        let State { idle, lanes, parked, tickets, failed, .. } = &mut *state;
        let windows = round_of(lanes, lane, round, self.most_ahead);
        let Some(windows) = windows.filter(|_| failed.is_none()) else {
            rest.refused = Some(next);
            return rest;
        };
        if self.notes {
            (next..operations.len()).for_each(|index| windows.notes.add(operations.claim(index)));
        }
        while next < operations.len() {
            let first = next;
            let claim = operations.claim(first);
            next += 1;
            let admission = windows.admit(&claim, has_landed, &self.delayed);
            if matches!(admission, Admission::WaitFlag(_)) && !tickets.are_back() {
                rest.freed.recall(tickets.recall_for(lane, round, &claim));
            }
            match admission {
                Admission::Lands(at) => {
                    next = first + windows.count_landing(at, operations, first, has_landed);
                    match operations.post(first..next) {
                        Post::All if has_landed(claim.source) => {}
                        Post::All => {
                            idle.forget(lane, round);
                            let claims = (first..next).map(|index| operations.claim(index));
                            windows.note_flying(claims, has_landed);
                        }
                        _ => rest.retry.extend(first..next),
                    }
                }
                Admission::WaitFlag(at) if self.has_credit(parked, claim.source) => {
                    let (count, claim) = windows.count_as_one(at, operations, first);
                    next = first + count;
                    let operation = operations.park(first..next);
                    windows.park(at, Waiting { claim, operation });
                    rest.has_parked = true;
                }
                Admission::WaitFlag(_) => rest.retry.push(first),
                Admission::Refused => {
                    rest.refused.get_or_insert(first);
                }
            }
        }
        rest
    }

    /// Takes a credit of a source to park an operation. Returns `false` if it has none.
    fn has_credit(&self, parked: &mut Vec<usize>, source: Rank) -> bool {
        if parked.len() <= source.index() {
            parked.resize(source.index() + 1, 0);
        }
        let count = &mut parked[source.index()];
        let left = *count < self.credits || !self.limited.contains(&source.0);
        *count += usize::from(left);
        left
    }

    /// Declares all windows of the round. Operations that none covers are refused.
    pub(crate) fn declare(
        &self,
        lane: LaneNumber,
        round: Round,
        areas: &mut Areas,
        has_landed: HasLanded<'_>,
    ) -> Freed {
        let mut state = self.state.lock();
        state.note_posting(lane, round);
        let State { idle, lanes, parked, tickets, .. } = &mut *state;
        let mut freed = Freed::default();
        let Some(windows) = round_of(lanes, lane, round, MOST_AHEAD) else {
            return freed;
        };
        let refused = windows.declare(areas, parked);
        for waiting in &refused {
            unpark(parked, &waiting.claim, &mut freed);
        }
        // Parts of what was parked as one may lie in windows that are open.
        for (at, window) in windows.windows().iter_mut().enumerate() {
            window.admit_parked((lane, round, at), parked, has_landed, &mut freed);
            if window.is_open() && !window.is_idle() {
                idle.forget(lane, round);
            }
            if !tickets.are_back() {
                for claim in window.delayed() {
                    freed.recall(tickets.recall_for(lane, round, claim));
                }
            }
            self.note_delayed(window);
        }
        drop(state);
        refuse(refused);
        freed
    }

    /// Admits parked operations for which the overlapping ones have landed. After a failure, closes
    /// the windows whose admitted operations have landed.
    pub(crate) fn settle(&self, has_landed: HasLanded<'_>) -> Freed {
        let mut state = self.state.lock();
        let State { lanes, parked, failed, .. } = &mut *state;
        let mut freed = Freed::default();
        let mut delayed = false;
        let rounds = lanes.iter_mut().enumerate().flat_map(|(lane, rounds)| {
            let lane = LaneNumber(lane as u8);
            rounds.entries_by_round().map(move |(number, round)| (lane, number, round))
        });
        for (lane, number, round) in rounds {
            for (at, window) in round.windows().iter_mut().enumerate() {
                let Some(reason) = failed else {
                    window.admit_parked((lane, number, at), parked, has_landed, &mut freed);
                    continue;
                };
                if let Some(guard) = window.close_if_landed(has_landed) {
                    freed.lists().guards.push(PoisonOnDrop::new(guard, reason));
                }
                delayed |= window.is_open();
            }
            delayed |= round.has_delayed();
        }
        self.delayed.store(delayed, Ordering::Relaxed);
        freed
    }

    /// Refuses all parked and later operations, after a failure of the run. `settle` closes every
    /// window once its admitted operations have landed.
    pub(crate) fn fail(&self, reason: &Arc<str>) {
        let mut state = self.state.lock();
        if let Some((lane, round)) = state.idle.round_of_posting() {
            state.note_posting(lane, round);
        }
        let State { idle, lanes, parked, tickets, failed, .. } = &mut *state;
        idle.forget_all();
        // Nothing lands any more by a ticket: the queue pairs to other processes are in error.
        for out in tickets.end_all() {
            end_in_window(lanes, &out);
        }
        failed.get_or_insert_with(|| Arc::clone(reason));
        parked.fill(0);
        let mut refused = Vec::new();
        for round in lanes.iter_mut().flat_map(Rounds::entries) {
            refused.append(&mut round.take_parked());
        }
        self.delayed.store(true, Ordering::Relaxed);
        drop(state);
        refuse(refused);
    }

    /// Ends the first round of a lane: its windows close and parked operations are refused. Recalls its
    /// tickets if it cannot end yet: then the caller tries again.
    ///
    /// **Errors**: the reason for that.
    pub(crate) fn end(
        &self,
        lane: LaneNumber,
        round: Round,
        has_landed: HasLanded<'_>,
        freed: &mut Freed,
    ) -> Result<EndedRound, Unended> {
        let mut state = self.state.lock();
        state.note_posting(lane, round);
        let State { idle, lanes, parked, tickets, .. } = &mut *state;
        idle.forget(lane, round);
        let mut over = EndedRound::default();
        let Some(ended) = round_of(lanes, lane, round, MOST_AHEAD) else {
            return Ok(over);
        };
        if !ended.may_end(has_landed) {
            freed.recall(tickets.recall_all(lane, round));
            let are_out = tickets.are_out(lane, round);
            return Err(if are_out { Unended::Tickets } else { Unended::Landing });
        }
        ended.empty(parked, &mut over);
        let rounds = &mut lanes[lane.index()];
        debug_assert_eq!(rounds.first(), round, "rounds of a lane end in order");
        rounds.pass();
        Ok(over)
    }

    /// Drops every window and every parked operation, at the end of the run.
    pub(crate) fn clear(&self) {
        let mut state = self.state.lock();
        state.idle.forget_all();
        state.tickets.end_all();
        let lanes = std::mem::take(&mut state.lanes);
        drop(state);
        drop(lanes);
    }

    /// Sets the hint if an operation is parked for a window that is open.
    pub(super) fn note_delayed(&self, window: &Window) {
        if window.has_delayed() {
            self.delayed.store(true, Ordering::Relaxed);
        }
    }

    /// Returns `true` if an operation is parked for a window that is open. A hint: it may miss a
    /// change under way, after which the changing thread checks again.
    #[inline]
    pub(crate) fn has_delayed(&self) -> bool {
        self.delayed.load(Ordering::Relaxed)
    }

    /// Returns the number of times that a window has opened while a peer waited for one, wrapping. A hint.
    #[inline]
    pub(crate) fn opened(&self) -> u32 {
        self.opened.load(Ordering::Relaxed)
    }
}

pub(super) fn refuse(refused: Vec<Waiting>) {
    refused.into_iter().for_each(|waiting| waiting.operation.refuse());
}
