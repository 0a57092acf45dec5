//! Tickets that a remote rank has given to this one, and those that it is expected to give.

use super::WindowRequest;
use crate::numbers::TicketNumber;
use crate::window::{Claim, Ticket};

/// Most places for which tickets are expected.
const MOST_EXPECTED: usize = 64;
/// Most tickets that are kept. A target gives fewer.
const MOST_HELD: usize = 1024;

/// The tickets of one target.
#[derive(Default)]
pub(super) struct HeldTickets {
    /// Tickets that have not been used.
    held: Vec<Ticket>,
    /// The last ticket for each place, the latest one at the end: windows of later rounds are expected to give another.
    last: Vec<Ticket>,
}

impl HeldTickets {
    #[inline]
    pub(super) fn are_none(&self) -> bool {
        self.held.is_empty()
    }

    /// Keeps a ticket. Returns `false` if there are too many.
    pub(super) fn keep(&mut self, ticket: Ticket) -> bool {
        let has_room = self.held.len() < MOST_HELD;
        if has_room {
            self.held.push(ticket);
        }
        has_room
    }

    pub(super) fn have(&self, is_one: impl Fn(&Ticket) -> bool) -> bool {
        self.held.iter().any(is_one)
    }

    /// Takes a ticket.
    #[inline]
    pub(super) fn take(&mut self, is_one: impl Fn(&Ticket) -> bool) -> Option<Ticket> {
        Some(self.held.remove(self.held.iter().position(is_one)?))
    }

    /// Takes a ticket that goes back unused, and expects no other one for its place.
    pub(super) fn give_back(&mut self, is_one: impl Fn(&Ticket) -> bool) -> Option<TicketNumber> {
        let ticket = self.take(is_one)?;
        self.expect_none(|last| last.lane == ticket.lane && covers(&last.claim, &ticket.claim));
        Some(ticket.number)
    }

    /// Expects further tickets for the place of one that has come.
    pub(super) fn expect(&mut self, ticket: Ticket) {
        let is_same = |last: &Ticket| (last.lane, last.claim) == (ticket.lane, ticket.claim);
        if let Some(last) = self.last.last_mut().filter(|last| is_same(last)) {
            *last = ticket;
            return;
        }
        self.last.retain(|last| !is_same(last));
        if self.last.len() == MOST_EXPECTED {
            self.last.remove(0);
        }
        self.last.push(ticket);
    }

    pub(super) fn expect_none(&mut self, is_one: impl Fn(&Ticket) -> bool) {
        self.last.retain(|last| !is_one(last));
    }

    /// Returns `true` if the window of a put is expected to give a ticket for it.
    #[inline]
    pub(super) fn are_expected_for(&self, request: WindowRequest, claim: &Claim) -> bool {
        self.last.iter().any(|last| precedes(last, request, claim))
    }

    pub(super) fn clear(&mut self) {
        *self = HeldTickets::default();
    }
}

/// Returns `true` if a put is one that a ticket allows.
pub(super) fn allows(ticket: &Ticket, request: WindowRequest, claim: &Claim) -> bool {
    (ticket.lane, ticket.round) == (request.lane, request.round) && covers(&ticket.claim, claim)
}

/// Returns `true` if a ticket was for a put like this one, of an earlier round.
pub(super) fn precedes(ticket: &Ticket, request: WindowRequest, claim: &Claim) -> bool {
    ticket.lane == request.lane && ticket.round < request.round && covers(&ticket.claim, claim)
}

/// Returns `true` if a put of the elements of `claim` is one of those of a ticket. All that lies between elements of a
/// ticket that are consecutive is in its window.
fn covers(ticket: &Claim, claim: &Claim) -> bool {
    let is_part = ticket.is_consecutive()
        && claim.is_consecutive()
        && (ticket.slot, ticket.kind) == (claim.slot, claim.kind)
        && ticket.index <= claim.index
        && claim.end <= ticket.end
        && claim.index < claim.end;
    is_part || ticket == claim
}
