//! Operations of this rank that wait for the windows, or the inboxes, of a remote rank.
//!
//! A put to elements for which there was a ticket in an earlier round does not ask at once: its window is expected to
//! give another one as it opens. If none comes for [`PATIENCE_NS`], counted from the next pass on, the put asks. A ticket
//! that comes for elements for which this rank has asked meanwhile goes back, as the target answers the request.

use std::collections::{BTreeMap, HashMap, VecDeque};

use smallvec::SmallVec;
use talpf_primitives::{AtomicBool, Mutex, Ordering};

use super::held_tickets::{HeldTickets, allows, precedes};
use crate::numbers::{ArrivalNumber, LaneNumber, Rank, Round, TicketNumber};
use crate::window::{Claim, Landing, Outcome, Parked, Post, Ticket};

/// The windows that an operation is for: those of one round at one rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WindowRequest {
    pub(crate) target: Rank,
    pub(crate) lane: LaneNumber,
    pub(crate) round: Round,
}

/// Time for which a put waits for a ticket before it asks: a few times that of a message between machines.
const PATIENCE_NS: u64 = 100_000;

/// The window requests to one target that have no answer yet, and its tickets.
#[derive(Default)]
pub(super) struct WindowRequests {
    state: Mutex<State>,
    /// Set while there may be granted operations. Changed under the lock.
    has_granted: AtomicBool,
    /// Set while there are tickets. Changed under the lock.
    has_tickets: AtomicBool,
    /// Set while puts may wait for a ticket. Changed under the lock.
    has_patient: AtomicBool,
}

#[derive(Default)]
struct State {
    next: u32,
    waiting: HashMap<u32, Waiting>,
    /// Granted operations that have not been posted, as the send queue was full.
    granted: VecDeque<Box<dyn Parked>>,
    tickets: HeldTickets,
    /// `true` once tickets go back: this rank has finished.
    needs_no_tickets: bool,
    failed: bool,
}

/// An operation that waits.
struct Waiting {
    wants: Wants,
    asks: Asks,
    operation: Box<dyn Parked>,
}

/// The request of an operation that waits.
#[derive(Clone, Copy, PartialEq)]
enum Asks {
    /// The request was sent.
    Sent,
    /// A ticket is awaited from the next pass on.
    Later,
    /// The request is sent at this time, unless a ticket comes.
    At(u64),
}

/// The need of an operation, without which it does not land.
#[derive(Clone, Copy)]
pub(super) enum Wants {
    /// A window that covers its claim.
    Window(WindowRequest, Claim),
    /// A wait of its target for notifications of an id.
    Notification(u32),
}

impl Wants {
    /// Returns `true` if the operation of `other` may land without this one, but perhaps not before: it is of
    /// the same or an earlier round of the lane, or has a notification of the same id.
    fn is_behind(&self, other: &Wants) -> bool {
        match (self, other) {
            (Wants::Window(request, _), Wants::Window(before, _)) => {
                request.lane == before.lane && before.round <= request.round
            }
            (Wants::Notification(id), Wants::Notification(other)) => id == other,
            _ => false,
        }
    }

    /// Returns `true` for an operation of the round of a ticket that touches elements of it.
    fn conflicts(&self, ticket: &Ticket) -> bool {
        matches!(self, Wants::Window(WindowRequest { lane, round, .. }, claim)
            if (*lane, *round) == (ticket.lane, ticket.round) && claim.conflicts(&ticket.claim))
    }

    /// Returns `true` for a put for which a ticket is expected.
    fn expects(&self, tickets: &HeldTickets) -> bool {
        matches!(self, Wants::Window(request, claim) if tickets.are_expected_for(*request, claim))
    }

    /// Returns `true` for a put that a ticket allows.
    fn is_allowed(&self, ticket: &Ticket) -> bool {
        matches!(self, Wants::Window(request, claim) if allows(ticket, *request, claim))
    }
}

impl State {
    /// Parks an operation, and returns its number. Returns the operation if `credits` operations wait,
    /// unless it comes before all that wait of its lane, or of its id: they may wait for it.
    fn park<L: Landing>(
        &mut self,
        (wants, asks): (Wants, Asks),
        mut operation: L,
        credits: usize,
    ) -> Result<u32, Outcome<L>> {
        if self.failed {
            return Err(Outcome::Refused(operation));
        }
        let behind = |other: &Waiting| wants.is_behind(&other.wants);
        if self.waiting.len() >= credits && self.waiting.values().any(behind) {
            operation.note_no_credit();
            return Err(Outcome::Retry(operation));
        }
        let number = loop {
            let number = self.next;
            self.next = number.wrapping_add(1);
            // After the numbers have wrapped, an old request may still have this one.
            if !self.waiting.contains_key(&number) {
                break number;
            }
        };
        self.waiting.insert(number, Waiting { wants, asks, operation: operation.park() });
        Ok(number)
    }

    /// Takes the put that waits for a ticket and that this one allows, the first one.
    fn take_patient(&mut self, ticket: &Ticket) -> Option<Box<dyn Parked>> {
        let waits = self.waiting.iter().filter(|(_, waiting)| waiting.wants.is_allowed(ticket));
        let first = waits.map(|(number, _)| *number).min()?;
        self.waiting.remove(&first).map(|waiting| waiting.operation)
    }
}

impl WindowRequests {
    /// Posts an operation, if there is a ticket for it. Otherwise parks it under a number that `send` sends;
    /// one for which a ticket is expected waits for that first. Tickets that are in the way go back before, by
    /// `give_back`.
    pub(super) fn add<L: Landing>(
        &self,
        wants: Wants,
        mut operation: L,
        credits: usize,
        send: impl FnOnce(u32),
        give_back: impl Fn(TicketNumber),
    ) -> Outcome<L> {
        let mut state = self.state.lock();
        if let Some(Ticket { number, .. }) = state.tickets.take(|ticket| wants.is_allowed(ticket)) {
            self.note_tickets(&state);
            drop(state);
            if operation.post_by_ticket(number) == Post::All {
                return Outcome::Posted(operation);
            }
            let mut operation = operation.park();
            operation.use_ticket(number);
            self.keep(operation);
            return Outcome::Parked;
        }
        let waits = wants.expects(&state.tickets) && !state.needs_no_tickets;
        let asks = if waits { Asks::Later } else { Asks::Sent };
        let number = match state.park((wants, asks), operation, credits) {
            Ok(number) => number,
            Err(outcome) => return outcome,
        };
        if waits {
            self.has_patient.store(true, Ordering::Release);
        }
        let mut in_the_way = SmallVec::<[TicketNumber; 1]>::new();
        while let Some(number) = state.tickets.give_back(|ticket| wants.conflicts(ticket)) {
            in_the_way.push(number);
        }
        self.note_tickets(&state);
        drop(state);
        in_the_way.into_iter().for_each(give_back);
        if !waits {
            send(number);
        }
        Outcome::Parked
    }

    fn note_tickets(&self, state: &State) {
        self.has_tickets.store(!state.tickets.are_none(), Ordering::Release);
    }

    /// Posts an operation, which the target has granted: under `arrival`, if it is one outside rounds.
    pub(super) fn grant(&self, number: u32, arrival: Option<ArrivalNumber>) {
        let mut state = self.state.lock();
        if let Some(mut waiting) = state.waiting.remove(&number) {
            arrival.into_iter().for_each(|arrival| waiting.operation.admit(arrival));
            self.post_soon(&mut state, waiting.operation);
        }
        drop(state);
        self.post_granted();
    }

    fn post_soon(&self, state: &mut State, operation: Box<dyn Parked>) {
        state.granted.push_back(operation);
        self.has_granted.store(true, Ordering::Release);
    }

    /// Stores the result of an atomic that the target has carried out. Returns the operation, which its drop ends;
    /// `None` if no atomic waits under this number.
    pub(super) fn take_result(&self, number: u32, value: u64) -> Option<Box<dyn Parked>> {
        let mut operation = self.state.lock().waiting.remove(&number)?.operation;
        operation.take_result(value).then_some(operation)
    }

    /// Returns `true` once the operations that wait have been refused, after a failure of the run.
    pub(super) fn have_failed(&self) -> bool {
        self.state.lock().failed
    }

    /// Takes a ticket: for a put that waits for it, or for one that comes later. Returns `false` if it goes
    /// back: the target will find a request for these elements, this rank has finished, or there are too many.
    pub(super) fn take_ticket(&self, ticket: Ticket) -> bool {
        let mut state = self.state.lock();
        if state.failed {
            return true;
        }
        state.tickets.expect(ticket);
        let has_asked =
            |waiting: &Waiting| waiting.asks == Asks::Sent && waiting.wants.conflicts(&ticket);
        if state.needs_no_tickets || state.waiting.values().any(has_asked) {
            return false;
        }
        if let Some(mut operation) = state.take_patient(&ticket) {
            operation.use_ticket(ticket.number);
            self.post_soon(&mut state, operation);
            drop(state);
            self.post_granted();
            return true;
        }
        let is_kept = state.tickets.keep(ticket);
        self.note_tickets(&state);
        is_kept
    }

    /// Gives back a ticket that its target recalls. Returns `false` if it was used, or has gone back.
    pub(super) fn give_back(&self, number: TicketNumber) -> bool {
        let mut state = self.state.lock();
        let was_held = state.tickets.give_back(|ticket| ticket.number == number).is_some();
        self.note_tickets(&state);
        was_held
    }

    /// Needs no tickets from now on: those that are held go back, by `give_back`, and what waits for one asks, by
    /// `send`.
    pub(super) fn end_tickets(
        &self,
        send: impl Fn(u32, WindowRequest, Claim),
        give_back: impl Fn(TicketNumber),
    ) {
        let mut state = self.state.lock();
        state.needs_no_tickets = true;
        let mut held = Vec::new();
        while let Some(number) = state.tickets.give_back(|_| true) {
            held.push(number);
        }
        self.note_tickets(&state);
        drop(state);
        held.into_iter().for_each(give_back);
        self.ask(u64::MAX, send);
    }

    /// Returns `true` if there is a ticket for an operation.
    #[inline]
    pub(super) fn has_ticket(&self, wants: &Wants) -> bool {
        self.has_tickets.load(Ordering::Acquire)
            && self.state.lock().tickets.have(|ticket| wants.is_allowed(ticket))
    }

    /// Returns `true` if puts may wait for tickets.
    #[inline]
    pub(super) fn has_patient(&self) -> bool {
        self.has_patient.load(Ordering::Acquire)
    }

    /// Lets the puts ask that have waited for a ticket long enough, at the time `now_ns`: `send` sends their
    /// requests.
    #[cold]
    pub(super) fn ask(&self, now_ns: u64, send: impl Fn(u32, WindowRequest, Claim)) {
        let mut state = self.state.lock();
        let State { waiting, tickets, .. } = &mut *state;
        let (mut asking, mut has_patient) = (Vec::new(), false);
        for (number, waiting) in waiting {
            match (waiting.asks, waiting.wants) {
                (Asks::Sent, _) => {}
                (Asks::Later, _) if now_ns < u64::MAX => {
                    waiting.asks = Asks::At(now_ns + PATIENCE_NS);
                    has_patient = true;
                }
                (Asks::At(at_ns), _) if now_ns < at_ns => has_patient = true,
                (_, Wants::Window(request, claim)) => {
                    waiting.asks = Asks::Sent;
                    tickets.expect_none(|last| precedes(last, request, &claim));
                    asking.push((*number, request, claim));
                }
                (_, Wants::Notification(_)) => {}
            }
        }
        self.has_patient.store(has_patient, Ordering::Release);
        drop(state);
        asking.sort_unstable_by_key(|(number, ..)| *number);
        asking.into_iter().for_each(|(number, request, claim)| send(number, request, claim));
    }

    /// Posts granted operations, as far as the send queue has room.
    pub(super) fn post_granted(&self) {
        while self.has_granted() {
            let mut state = self.state.lock();
            let Some(mut operation) = state.granted.pop_front() else {
                return self.has_granted.store(false, Ordering::Release);
            };
            drop(state);
            if operation.post() != Post::All {
                self.keep(operation);
                return;
            }
        }
    }

    /// Returns `true` if granted operations wait for room in the send queue.
    pub(super) fn has_granted(&self) -> bool {
        self.has_granted.load(Ordering::Acquire)
    }

    fn keep(&self, operation: Box<dyn Parked>) {
        let mut state = self.state.lock();
        if !state.failed {
            self.has_granted.store(true, Ordering::Release);
            return state.granted.push_front(operation);
        }
        drop(state);
        operation.refuse();
    }

    /// Refuses an operation, for which the target has no window.
    pub(super) fn refuse(&self, number: u32) {
        let refused = self.state.lock().waiting.remove(&number);
        refused.into_iter().for_each(|waiting| waiting.operation.refuse());
    }

    /// Refuses all operations that wait and all later ones, after a failure of the run.
    pub(super) fn fail(&self) {
        let mut state = self.state.lock();
        state.failed = true;
        state.tickets.clear();
        drop(state);
        self.take_all().for_each(|operation| operation.refuse());
    }

    /// Drops all operations that wait, at the end of the run.
    pub(super) fn clear(&self) {
        self.take_all().for_each(drop);
    }

    /// Returns the ids of notifications that wait, each with their number, for reports.
    pub(super) fn ids(&self) -> BTreeMap<u32, usize> {
        let mut ids = BTreeMap::new();
        for waiting in self.state.lock().waiting.values() {
            if let Wants::Notification(id) = waiting.wants {
                *ids.entry(id).or_default() += 1;
            }
        }
        ids
    }

    fn take_all(&self) -> impl Iterator<Item = Box<dyn Parked>> {
        let mut state = self.state.lock();
        let waiting = std::mem::take(&mut state.waiting);
        let granted = std::mem::take(&mut state.granted);
        waiting.into_values().map(|waiting| waiting.operation).chain(granted)
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
