//! An operation from its issue to its post, which owns its memory.

mod requests;

use std::sync::Arc;

use ibverbs_sim::{Error as DeviceError, Operation as Request, RemoteAddress, WordUpdate};

use super::Done;
use super::guards::ResultWord;
use super::payloads::{Memory, Position};
use super::retry_queue::Sequence;
use super::transfer::{Route, Transfer, Verb};
use crate::endpoint::NOBODY;
use crate::error::Error;
use crate::immediate::{Immediate, Kind as Announced};
use crate::notification::NotifiedClaim;
use crate::numbers::{ArrivalNumber, Rank, Round, TicketNumber};
use crate::sender::RoundState;
use crate::window::{Claim, Landing, Outcome, Parked, Post};

/// An operation on its way to the device.
pub(crate) struct Issued {
    round: Arc<RoundState>,
    /// `true` while the round waits for the operation, until it is posted or parked.
    awaited: bool,
    /// `true` while the round counts the operation as parked.
    parked: bool,
    /// `true` once the window table has noted the operation, to find conflicts.
    is_noted: bool,
    /// `true` if the last attempt has found no credit.
    lacks_credit: bool,
    at: Transfer,
    route: Route,
    /// The notification of an operation outside rounds, with its claim.
    notified: Option<NotifiedClaim>,
    /// The immediate with which it announces itself, if that is not its round, once it may land.
    notice: Option<u32>,
    verb: Verb,
    memory: Memory,
    /// The number of an atomic that its target may carry out, until that has its result.
    result: Option<ResultWord>,
    done: Option<Done>,
    /// Identifier of the last request, once `done` is registered under it.
    wr_id: Option<u64>,
    /// Number of requests that are posted already, and the position behind them.
    posted: usize,
    position: Position,
}

impl Issued {
    pub(super) fn new(
        round: &Arc<RoundState>,
        at: Transfer,
        route: Route,
        verb: Verb,
        memory: Memory,
        done: Option<Done>,
    ) -> Self {
        let round = round.enter();
        let (wr_id, posted) = (None, 0);
        let (awaited, parked, is_noted, lacks_credit) = (true, false, false, false);
        let position = Position::start(&at);
        Issued {
            round,
            awaited,
            parked,
            is_noted,
            lacks_credit,
            at,
            route,
            notified: None,
            notice: None,
            verb,
            memory,
            result: None,
            done,
            wr_id,
            posted,
            position,
        }
    }

    /// Lets the target carry the atomic out, whose result is stored to `result` then.
    pub(super) fn with_result(mut self, result: ResultWord) -> Self {
        self.result = Some(result);
        self
    }

    /// Makes the operation one outside rounds, which lands in an inbox or a raw slot.
    pub(super) fn notifying(mut self, notified: NotifiedClaim) -> Self {
        self.notified = Some(notified);
        self
    }

    /// Posts the operation, parks it at its target, or queues it to be retried.
    pub(super) fn issue(self) {
        if let Some(issued) = self.attempt() {
            let round = Arc::clone(&issued.round);
            round.sender.push_retry(issued);
        }
    }

    /// Posts the operation or parks it at its target. An operation that is returned has to be
    /// retried.
    pub(crate) fn attempt(mut self) -> Option<Self> {
        self.lacks_credit = false;
        let round = Arc::clone(&self.round);
        let (origin, target) = (&round.sender, self.at.target);
        if let Some(error) = origin.error() {
            if self.is_under_way() {
                return Some(self);
            }
            self.fail(error);
            return None;
        }
        if let Some(notified) = self.notified {
            return self.attempt_to_notify(notified);
        }
        let Route::Window(claim) = self.route else {
            let post = self.post_requests();
            origin.peers.notify(target);
            round.progress_if_rung();
            return (post != Post::All).then_some(self);
        };
        let again = match origin.peers.land(round.request(target), claim, false, self) {
            Outcome::Posted(_) => {
                origin.peers.notify(target);
                None
            }
            Outcome::Parked => None,
            Outcome::Retry(issued) => Some(issued),
            Outcome::Refused(issued) => {
                issued.refused(&claim);
                None
            }
        };
        round.progress_if_rung();
        again
    }

    /// As `attempt`, of an operation outside rounds.
    fn attempt_to_notify(self, notified: NotifiedClaim) -> Option<Self> {
        let (round, target) = (Arc::clone(&self.round), self.at.target);
        let peers = &round.sender.peers;
        match peers.land_notified(target, notified, round.rank, false, self) {
            Outcome::Posted(_) => {
                peers.notify_waiting(target);
                None
            }
            Outcome::Parked => None,
            Outcome::Retry(issued) => Some(issued),
            Outcome::Refused(issued) => {
                Parked::refuse(Box::new(issued));
                None
            }
        }
    }

    /// Returns the target of the operation, and the sequence in which it is retried.
    pub(crate) fn destination(&self) -> (Rank, Sequence, Round) {
        let sequence = match self.notified {
            Some(notified) => Sequence::Notification(notified.notification.id),
            None => Sequence::Lane(self.round.lane),
        };
        (self.at.target, sequence, self.round.number)
    }

    pub(super) fn round(&self) -> &Arc<RoundState> {
        &self.round
    }

    /// Returns the claim of an operation that needs a window.
    pub(super) fn claim(&self) -> Option<Claim> {
        match self.route {
            Route::Window(claim) => Some(claim),
            Route::Direct => None,
        }
    }

    /// Returns the bytes of a short put to consecutive elements, and their remote address.
    pub(super) fn inline(&self) -> Option<(RemoteAddress, &[u8])> {
        match &self.memory {
            Memory::Inline(bytes) if self.at.is_consecutive() => Some((self.at.remote, bytes)),
            _ => None,
        }
    }

    /// Returns `true` if the operation may be posted in one chain with others of its round and
    /// target.
    pub(super) fn goes_together(&self) -> bool {
        self.claim().is_some_and(|claim| !claim.raw)
            && self.posted == 0
            && self.inline().is_some()
            && self.round.sender.peers.takes_together(self.round.rank, self.at.target)
    }

    /// Returns `true` if the last attempt has found no credit.
    pub(super) fn lacks_credit(&self) -> bool {
        self.lacks_credit
    }

    pub(super) fn is_posted(&self) -> bool {
        self.posted > 0
    }

    /// Notes that all requests of the operation are posted.
    pub(super) fn note_posted(&mut self) {
        self.leave_round();
        self.posted = self.posted.max(1);
    }

    pub(super) fn trace_send(&mut self) {
        // A notification is outside rounds.
        let lane = self.notified.is_none().then_some(self.round.lane);
        self.round.sender.tracer.send(&mut self.at, self.verb, lane);
    }

    /// Fails the operation, which no window covers, and the run with it.
    pub(super) fn refused(self, claim: &Claim) {
        let error = refusal(claim, &self.round, self.at.target);
        if self.is_under_way() {
            let round = Arc::clone(&self.round);
            round.sender.push_retry(self);
        } else {
            self.fail(error);
        }
    }

    /// Returns `true` while the device may work on a part of the operation.
    fn is_under_way(&self) -> bool {
        let origin = &self.round.sender;
        let is_begun = self.posted > 0 || matches!(self.memory, Memory::Posted);
        is_begun && !origin.own.endpoint.is_drained(self.at.target)
    }

    pub(super) fn set_done(&mut self, done: Done) {
        self.done = Some(done);
    }

    /// Fails the operation, for which no completion comes: its last request was not posted.
    pub(crate) fn fail(mut self, error: Error) {
        self.take_back();
        if let Some(done) = self.done.take() {
            done(Err(error));
        }
    }

    /// Takes back the action of the completion of its last request.
    fn take_back(&mut self) {
        if let Some(wr_id) = self.wr_id.take() {
            let pending = &self.round.sender.pending;
            self.done = self.done.take().or_else(|| pending.take(wr_id));
        }
    }

    fn immediate(&self) -> u32 {
        if let Some(notice) = self.notice {
            return notice;
        }
        let granted = self.claim().is_some() && self.round.sender.peers.is_granting(self.at.target);
        let kind = if granted { Announced::Granted } else { Announced::Data };
        Immediate::new(kind, self.round.lane, self.round.number).to_bits()
    }

    fn post_requests(&mut self) -> Post {
        let round = Arc::clone(&self.round);
        let origin = &round.sender;
        let (endpoint, target) = (&origin.own.endpoint, self.at.target);
        self.trace_send();
        let result = match &self.memory {
            Memory::Inline(bytes) if self.at.is_consecutive() => {
                let (remote, immediate) = (self.at.remote, self.immediate());
                let request = match self.notice.is_some() && bytes.is_empty() {
                    true => Request::SendWithImmediate { immediate },
                    false => Request::WriteWithImmediate { remote, immediate },
                };
                endpoint.post_inline(target, request, bytes).map_err(|error| error.reason)
            }
            _ => {
                let wr_id = match self.wr_id {
                    Some(wr_id) => wr_id,
                    // The drop ends a copied operation.
                    None if matches!(self.memory, Memory::Inline(_)) => NOBODY,
                    None => self.done.take().map_or(NOBODY, |done| origin.pending.insert(done)),
                };
                self.wr_id = Some(wr_id);
                origin.tracer.outstanding(|| origin.outstanding());
                self.post_rest(wr_id, endpoint)
            }
        };
        match result {
            Ok(()) => {
                self.note_posted();
                Post::All
            }
            Err(DeviceError::QueueFull { .. }) if self.posted == 0 => Post::Nothing,
            Err(DeviceError::QueueFull { .. }) => Post::Some,
            Err(reason) => {
                // The queue pair has failed: the device carries out no later request of this rank.
                self.take_back();
                self.leave_round();
                origin.fail_soon(Error::Device(reason));
                Post::All
            }
        }
    }

    fn leave_round(&mut self) {
        let is_last = std::mem::take(&mut self.awaited) && self.round.leave();
        if std::mem::take(&mut self.parked) && self.round.parked.leave() || is_last {
            // The caller may hold a lock.
            self.round.sender.own.ring_for_poll();
        }
    }
}

/// Returns the error of an operation that a window table has refused: that of a failed run, or that
/// of a missing window, which fails the run at both ranks (R7).
#[cold]
pub(super) fn refusal(claim: &Claim, round: &RoundState, target: Rank) -> Error {
    let RoundState { sender, rank, lane, number, .. } = round;
    if let Some(error) = sender.error() {
        return error;
    }
    let is_ahead = sender.peers.check_ahead(target, *rank, *lane, *number);
    let outside = || Error::outside_window(claim, target, *lane, *number);
    let error = is_ahead.err().unwrap_or_else(outside);
    sender.run_failure.fail(&[*rank, target], &error);
    error
}

/// Ends a copied operation that was posted, or an atomic that its target has carried out. Not done at the post: the poster may hold the lock of
/// windows, and the end of an operation releases regions and wakes tasks. An operation that was
/// never posted ends with an error.
impl Drop for Issued {
    fn drop(&mut self) {
        self.leave_round();
        if let Some(done) = self.done.take() {
            done(match self.memory {
                Memory::Inline(_) | Memory::CarriedOut if self.posted > 0 => Ok(()),
                _ => Err(Error::Runtime(talpf_runtime::Error::ShutDown)),
            });
        }
    }
}

/// Returns the error of a notification that its target has refused, which fails the run at both ranks
/// unless it has failed.
#[cold]
pub(super) fn refusal_of_notified(
    notified: &NotifiedClaim,
    round: &RoundState,
    target: Rank,
) -> Error {
    let RoundState { sender, rank, .. } = round;
    if let Some(error) = sender.error() {
        return error;
    }
    // A remote target that refuses has sent its error before.
    let ids = sender.peers.local(target).map_or(u32::MAX, |peer| peer.notifications.ids());
    let error = Error::outside_inbox(notified, target, ids);
    sender.run_failure.fail(&[*rank, target], &error);
    error
}

impl Landing for Issued {
    fn is_noted(&mut self) -> bool {
        std::mem::replace(&mut self.is_noted, true)
    }

    fn note_no_credit(&mut self) {
        self.lacks_credit = true;
    }

    fn post(&mut self) -> Post {
        self.post_requests()
    }

    fn admit(&mut self, number: ArrivalNumber) {
        self.notice = Some(Immediate::notified(number));
    }

    fn post_by_ticket(&mut self, ticket: TicketNumber) -> Post {
        self.use_ticket(ticket);
        self.post_requests()
    }

    fn eager_bytes(&self) -> Option<(RemoteAddress, &[u8])> {
        self.inline().filter(|_| self.verb == Verb::Put && !self.is_posted())
    }

    fn eager_update(&self) -> Option<(RemoteAddress, WordUpdate)> {
        self.result.as_ref().and_then(|_| self.verb.update()).map(|update| (self.at.remote, update))
    }

    fn trace_eager_send(&mut self) {
        self.trace_send();
    }

    fn note_sent_eagerly(&mut self) {
        self.note_posted();
    }

    fn park(mut self) -> Box<dyn Parked> {
        self.round.parked.enter();
        self.leave_round();
        self.parked = true;
        Box::new(self)
    }
}

impl Parked for Issued {
    fn post(&mut self) -> Post {
        self.post_requests()
    }

    fn is_quick(&self) -> bool {
        self.inline().is_some()
    }

    fn admit(&mut self, number: ArrivalNumber) {
        self.notice = Some(Immediate::notified(number));
    }

    fn use_ticket(&mut self, ticket: TicketNumber) {
        self.notice = Some(Immediate::by_ticket(ticket));
    }

    fn take_result(&mut self, value: u64) -> bool {
        let Some(result) = self.result.take() else { return false };
        result.store(value);
        self.memory = Memory::CarriedOut;
        self.note_posted();
        true
    }

    fn refuse(self: Box<Self>) {
        if let Some(notified) = self.notified {
            let (round, target) = (Arc::clone(&self.round), self.at.target);
            let error = refusal_of_notified(&notified, &round, target);
            return if self.is_under_way() {
                round.sender.push_retry(*self);
            } else {
                self.fail(error);
            };
        }
        if let Some(claim) = self.claim() {
            self.refused(&claim);
        }
    }
}
