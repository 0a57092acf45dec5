//! Tickets: puts of remote ranks that may land before they ask for it.
//!
//! A rank of another process asks for the window of a long put, and waits for the answer. Programs repeat
//! themselves, so the table keeps what was asked for. A window that opens with the same elements gives
//! the source a ticket, unasked: the right to one put to these elements, or to some of them. The put announces itself by
//! the number of the ticket.
//!
//! A ticket that is out counts as a put that is being posted. So nothing that overlaps it lands, and its
//! window does not close, before the put has arrived or the source has returned the ticket. It does so when the table
//! recalls the ticket, for an operation that waits for these elements or for the end of the round.
//!
//! A ticket that comes back unused was a wrong guess. The next ones for these elements need more and more
//! requests before them, so that a program which repeats itself only now and then has few.

use std::collections::BTreeMap;
use std::ops::Range;

use super::area::{Claim, Kind};
use super::landing::{HasLanded, Recalled};
use super::round::Window;
use crate::immediate::TICKET_NUMBERS;
use crate::numbers::{LaneNumber, Rank, Round, TicketNumber};

/// Most tickets of a table that are out.
const MOST_OUT: usize = 256;
/// Most puts that are kept. If there are more, all are forgotten.
const MOST_REPEATED: usize = 4096;
/// Requests that the first ticket needs.
const FIRST_NEEDED: u32 = 2;
/// Most requests that a ticket needs after wrong guesses.
const MOST_NEEDED: u32 = 64;

/// A ticket for its source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ticket {
    pub(crate) number: TicketNumber,
    pub(crate) lane: LaneNumber,
    pub(crate) round: Round,
    pub(crate) claim: Claim,
}

/// A function that sends a ticket to its source. Returns `false` if the source needs none any more.
pub(crate) type SendTicket<'a> = &'a dyn Fn(Ticket) -> bool;

/// The end of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TicketEnd {
    /// The put has arrived.
    Used,
    /// The source has returned the ticket, as it had asked before that came.
    Late,
    /// The source has returned the ticket, which it does not need.
    Unused,
}

/// Tickets that a rank has given to ranks of other processes, by
/// [`Context::ticket_counts`](crate::Context::ticket_counts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TicketCounts {
    /// Tickets that were given.
    pub given: u64,
    /// Tickets by which puts have landed.
    pub used: u64,
    /// Tickets that came after their source had asked for the window, and have come back.
    pub late: u64,
    /// Tickets that have come back as the source had no use for them.
    pub unused: u64,
}

impl TicketCounts {
    /// Adds the tickets of another rank.
    pub fn add(&mut self, other: &Self) {
        self.given += other.given;
        self.used += other.used;
        self.late += other.late;
        self.unused += other.unused;
    }
}

/// The tickets of one table.
#[derive(Default)]
pub(super) struct Tickets {
    pub(super) counts: TicketCounts,
    /// Puts that were asked for, by lane, slot and first element.
    repeated: BTreeMap<Key, Repeated>,
    out: Vec<TicketOut>,
    next: u32,
}

/// Lane, slot and first element of a put.
type Key = (LaneNumber, u32, u64);

/// A put that was asked for.
struct Repeated {
    claim: Claim,
    /// Requests since a ticket came back unused, at most those that are needed.
    asked: u32,
    /// Requests before the next ticket.
    needed: u32,
}

/// A ticket that is out.
pub(super) struct TicketOut {
    number: TicketNumber,
    pub(super) lane: LaneNumber,
    pub(super) round: Round,
    /// Number of its window.
    pub(super) window: usize,
    pub(super) claim: Claim,
    is_recalled: bool,
}

impl Tickets {
    /// Returns `true` if no window that opens gives a ticket.
    #[inline]
    pub(super) fn are_none(&self) -> bool {
        self.repeated.is_empty()
    }

    /// Keeps a put for which a remote rank asks.
    #[cold]
    pub(super) fn note_asked(&mut self, lane: LaneNumber, claim: &Claim) {
        if claim.kind != Kind::Write || claim.raw || claim.index >= claim.end {
            return;
        }
        if self.repeated.len() >= MOST_REPEATED {
            self.repeated.clear();
        }
        let new = || Repeated { claim: *claim, asked: 0, needed: FIRST_NEEDED };
        let repeated = self.repeated.entry((lane, claim.slot, claim.index)).or_insert_with(new);
        repeated.claim = *claim;
        repeated.asked = repeated.needed.min(repeated.asked + 1);
    }

    /// Sends tickets for the elements of a window that has opened as `at`, to ranks that do not wait for it. Under the
    /// lock of the table, so that no ticket is recalled before it is sent.
    #[cold]
    pub(super) fn give(
        &mut self,
        (lane, round, number_of_window): (LaneNumber, Round, usize),
        window: &mut Window,
        (has_landed, send): (HasLanded<'_>, SendTicket<'_>),
    ) {
        let Some(area) = window.area() else { return };
        let (elements, key) = (area.elements(), |element| (lane, area.slot, element));
        let inside = |elements: Range<u64>| {
            let repeated = self.repeated.range(key(elements.start)..key(elements.end));
            repeated.take(MOST_OUT).map(|(_, repeated)| repeated)
        };
        for repeated in inside(elements) {
            let claim = repeated.claim;
            let is_likely = repeated.asked >= repeated.needed && area.covers(&claim);
            let is_waiting =
                |waiting: &Claim| waiting.source == claim.source || waiting.conflicts(&claim);
            // A rectangle that others lie within would keep them out.
            let is_alone =
                || claim.is_consecutive() || inside(claim.index + 1..claim.end).next().is_none();
            if !is_likely
                || window.is_awaited_by(is_waiting)
                || !is_alone()
                || !window.in_flight.admits(&claim, has_landed)
            {
                continue;
            }
            let number = TicketNumber(self.next % TICKET_NUMBERS);
            if self.out.len() >= MOST_OUT || self.out.iter().any(|out| out.number == number) {
                break;
            }
            if send(Ticket { number, lane, round, claim }) {
                self.next = self.next.wrapping_add(1);
                self.counts.given += 1;
                window.in_flight.begin_to_post(&claim);
                let (window, is_recalled) = (number_of_window, false);
                self.out.push(TicketOut { number, lane, round, window, claim, is_recalled });
            }
        }
    }

    /// Removes a ticket of `source` that is out. `None` if it has none of this number.
    pub(super) fn end(
        &mut self,
        number: TicketNumber,
        source: Rank,
        end: TicketEnd,
    ) -> Option<TicketOut> {
        let is_it = |out: &TicketOut| out.number == number && out.claim.source == source;
        let out = self.out.swap_remove(self.out.iter().position(is_it)?);
        match end {
            TicketEnd::Used => self.counts.used += 1,
            TicketEnd::Late => self.counts.late += 1,
            TicketEnd::Unused => self.counts.unused += 1,
        }
        if end == TicketEnd::Unused
            && let Some(repeated) =
                self.repeated.get_mut(&(out.lane, out.claim.slot, out.claim.index))
        {
            (repeated.asked, repeated.needed) = (0, (4 * repeated.needed).min(MOST_NEEDED));
        }
        Some(out)
    }

    /// Removes the tickets that are out: they are not used any more.
    pub(super) fn end_all(&mut self) -> Vec<TicketOut> {
        std::mem::take(&mut self.out)
    }

    /// Returns `true` if tickets of a round are out.
    pub(super) fn are_out(&self, lane: LaneNumber, round: Round) -> bool {
        self.out.iter().any(|out| out.is_of(lane, round))
    }

    /// Recalls the tickets of a round.
    pub(super) fn recall_all(&mut self, lane: LaneNumber, round: Round) -> Vec<Recalled> {
        self.recall(|out| out.is_of(lane, round))
    }

    /// Recalls the tickets of a round that are in the way of an operation.
    #[cold]
    pub(super) fn recall_for(
        &mut self,
        lane: LaneNumber,
        round: Round,
        claim: &Claim,
    ) -> Vec<Recalled> {
        self.recall(|out| out.is_of(lane, round) && out.claim.conflicts(claim))
    }

    /// Returns `true` if no ticket is out.
    #[inline]
    pub(super) fn are_back(&self) -> bool {
        self.out.is_empty()
    }

    /// Returns the sources of the tickets that were recalled and are still out, with their number.
    pub(super) fn recalled(&self) -> BTreeMap<Rank, usize> {
        let mut sources = BTreeMap::new();
        for out in self.out.iter().filter(|out| out.is_recalled) {
            *sources.entry(out.claim.source).or_default() += 1;
        }
        sources
    }

    /// Recalls the tickets that `is_recalled` names, each once.
    fn recall(&mut self, is_recalled: impl Fn(&TicketOut) -> bool) -> Vec<Recalled> {
        let recalled = self.out.iter_mut().filter(|out| !out.is_recalled && is_recalled(out));
        let recall = |out: &mut TicketOut| {
            out.is_recalled = true;
            (out.claim.source, out.number)
        };
        recalled.map(recall).collect()
    }
}

impl TicketOut {
    #[inline]
    fn is_of(&self, lane: LaneNumber, round: Round) -> bool {
        (self.lane, self.round) == (lane, round)
    }
}

/// Returns the description of a message about a ticket that its sender does not have.
#[cold]
pub(crate) fn no_ticket(TicketNumber(number): TicketNumber) -> String {
    format!("ticket {number}, which this rank has not given it or which has ended")
}
