//! A rank in another process, which is reached by control messages.

use std::fmt::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use ibverbs_sim::Device;
use talpf_runtime::Clock;
use talpf_traces::counted;

use super::attention::Attention;
use super::control_message::{ControlMessage, Envelope};
use super::distribution::Distribution;
use super::eager_counts::EagerCounts;
use super::event_watch::signal;
use super::put_list::{MOST_PUTS, PutListWriter};
use super::window_requests::{Wants, WindowRequest, WindowRequests};
use crate::notification::NotifiedClaim;
use crate::numbers::{ArrivalNumber, Rank, TicketNumber};
use crate::window::{Claim, Landing, Outcome, Parked, Rest, Ticket, TravelTogether};

/// Short puts between two ranks that may not have landed, for each credit.
const EAGER_PER_CREDIT: usize = 8;

/// A rank in another process. Functions with a rank `own` concern its pair with that rank of this
/// process.
pub(crate) struct RemotePeer {
    pub(crate) rank: Rank,
    /// Number of its process.
    pub(super) process: u32,
    device: Device,
    /// `true` if data is copied to the memory of the peer, and from there, as it is posted.
    pub(crate) is_mapped: bool,
    /// Largest number of window requests under way to the peer, from each rank.
    credits: usize,
    /// Event of the thread that serves other processes, if there is one.
    thread: Option<Arc<OwnedFd>>,
    /// Flags of all remote peers.
    attention: Arc<Attention>,
    /// Pairs with the ranks of this process.
    pairs: Box<[Pair]>,
    distribution: Distribution,
    /// Set once the process of the peer has sent [`ControlMessage::Finished`].
    finished: AtomicBool,
    /// Set once it has sent [`ControlMessage::Left`].
    left: AtomicBool,
    /// Set once nothing of the peer lands here any more.
    cut_off: AtomicBool,
}

/// Operations under way between a rank of this process and a peer.
#[derive(Default)]
struct Pair {
    requests: WindowRequests,
    /// In memory of its own, as most programs have none.
    inbox_requests: Box<WindowRequests>,
    eager: EagerCounts,
    /// Number of operations of the peer that were granted here and have not arrived.
    granted: AtomicU32,
}

impl RemotePeer {
    pub(crate) fn new(
        rank: Rank,
        distribution: Distribution,
        device: &Device,
        credits: usize,
        (thread, attention): (Option<Arc<OwnedFd>>, Arc<Attention>),
    ) -> Self {
        let process = distribution.process_of(rank);
        RemotePeer {
            rank,
            process,
            is_mapped: device.maps_memory_of(process),
            device: device.clone(),
            credits,
            thread,
            attention,
            pairs: distribution.here().map(|_| Pair::default()).collect(),
            distribution,
            finished: AtomicBool::new(false),
            left: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
        }
    }

    /// Wakes the thread that serves other processes, if there is one, for what no event announces.
    pub(crate) fn wake_thread(&self) {
        self.thread.as_deref().into_iter().for_each(signal);
    }

    /// Returns the pair of a rank of this process.
    fn pair(&self, own: Rank) -> Option<&Pair> {
        self.pairs.get(self.distribution.index_here(own)?)
    }

    /// Sends a message of a rank of this process.
    pub(super) fn send(&self, own: Rank, message: ControlMessage<'_>) {
        let head = message.head(Envelope { source: own, target: self.rank });
        // The only error is a process that does not exist, and every rank has one.
        let _ = self.device.send_datagram(self.process, &[head.bytes(), message.data()]);
    }

    /// Requests of the windows of the peer that an operation may land, or sends a short put or an atomic
    /// with the request.
    #[cold] // Out of the way of puts within a process, which take a tenth of its time.
    pub(crate) fn request_window<L: Landing>(
        &self,
        request: WindowRequest,
        claim: Claim,
        mut operation: L,
    ) -> Outcome<L> {
        let own = claim.source;
        let Some(pair) = self.pair(own) else {
            return Outcome::Refused(operation);
        };
        let wants = Wants::Window(request, claim);
        let update = operation.eager_update().filter(|_| !claim.raw);
        if update.is_some() {
            operation.trace_eager_send();
        }
        let send = |number| {
            let message = match update {
                Some((remote, update)) => {
                    ControlMessage::Atomic { number, request, claim, remote, update }
                }
                None => ControlMessage::WindowRequest { number, request, claim },
            };
            self.send(own, message);
        };
        // Of an operation that is only noted, the number of grants is the number of notes.
        if !claim.raw
            && !self.cut_off.load(Ordering::Acquire)
            && operation.eager_bytes().is_some()
            && !pair.requests.has_ticket(&wants)
        {
            if pair.eager.take_credits(1, self.eager_credits()) == 1 {
                operation.trace_eager_send();
                if let Some((remote, bytes)) = operation.eager_bytes() {
                    let landed = pair.eager.report();
                    self.send(own, ControlMessage::Put { landed, request, claim, remote, bytes });
                }
                operation.note_sent_eagerly();
                return Outcome::Posted(operation);
            }
            if !pair.eager.are_stuck() {
                return Outcome::Retry(operation);
            }
        }
        let give_back = |number| {
            self.send(own, ControlMessage::TicketReturn { number, has_asked: false });
        };
        let outcome = pair.requests.add(wants, operation, self.credits, send, give_back);
        self.note_left_over(pair);
        outcome
    }

    /// Leaves to the next pass what a call has left to do.
    fn note_left_over(&self, pair: &Pair) {
        if self.waits(pair) {
            self.attention.need();
        }
    }

    /// Sends short puts with their claims in one message, as far as there is credit.
    #[cold] // As above.
    pub(crate) fn send_together(&self, request: WindowRequest, puts: &impl TravelTogether) -> Rest {
        let own = puts.claim(0).source;
        let pair = self.pair(own).filter(|_| !self.cut_off.load(Ordering::Acquire));
        let Some(pair) = pair else {
            return Rest { refused: Some(0), ..Rest::default() };
        };
        let wanted = puts.len().min(MOST_PUTS);
        let count = pair.eager.take_credits(wanted, self.eager_credits());
        if count > 0 {
            puts.trace_send(0..count);
            let mut list = PutListWriter::new(count);
            for index in 0..count {
                let claim = puts.claim(index);
                puts.with_bytes(index, |remote, bytes| list.add(&claim, remote, bytes));
            }
            let (landed, puts) = (pair.eager.report(), &*list.finish());
            self.send(own, ControlMessage::Puts { landed, request, puts });
        }
        puts.note_sent(0..count);
        Rest { retry: (count..puts.len()).collect(), ..Rest::default() }
    }

    /// Returns `true` if short puts that found no credit may be sent together later.
    pub(crate) fn takes_together(&self, own: Rank) -> bool {
        self.pair(own).is_some_and(|pair| !pair.eager.are_stuck())
    }

    /// Returns the most short puts of a rank that may not have landed.
    fn eager_credits(&self) -> usize {
        self.credits * EAGER_PER_CREDIT
    }

    /// Requests of the notifications of the peer that an operation may land, or sends a short one
    /// with the request.
    pub(crate) fn request_inbox<L: Landing>(
        &self,
        notified: NotifiedClaim,
        mut operation: L,
    ) -> Outcome<L> {
        let own = notified.claim.source;
        let Some(pair) = self.pair(own) else {
            return Outcome::Refused(operation);
        };
        if !self.cut_off.load(Ordering::Acquire)
            && operation.eager_bytes().is_some()
            && pair.eager.take_credits(1, self.eager_credits()) == 1
        {
            operation.trace_eager_send();
            if let Some((remote, bytes)) = operation.eager_bytes() {
                let landed = pair.eager.report();
                self.send(own, ControlMessage::NotifiedPut { landed, notified, remote, bytes });
            }
            operation.note_sent_eagerly();
            return Outcome::Posted(operation);
        }
        let wants = Wants::Notification(notified.notification.id);
        let send = |number| self.send(own, ControlMessage::InboxRequest { number, notified });
        let outcome = pair.inbox_requests.add(wants, operation, self.credits, send, |_| {});
        self.note_left_over(pair);
        outcome
    }

    /// Takes in the answer to a window request: the operation may land.
    pub(super) fn take_grant(&self, own: Rank, number: u32) {
        let Some(pair) = self.pair(own) else { return };
        pair.requests.grant(number, None);
        self.note_left_over(pair);
    }

    /// Stores the result of an atomic that the peer has carried out. Returns the operation, which its drop ends; none
    /// after a failure.
    ///
    /// **Errors**: no atomic waits for this result.
    pub(super) fn take_result(
        &self,
        own: Rank,
        number: u32,
        value: u64,
    ) -> Result<Option<Box<dyn Parked>>, String> {
        let Some(pair) = self.pair(own) else { return Ok(None) };
        let ended = pair.requests.take_result(number, value);
        if ended.is_none() && !pair.requests.have_failed() {
            return Err(format!("the result of atomic {number}, which is not under way"));
        }
        Ok(ended)
    }

    /// Takes a ticket of the peer, or gives it back if it comes too late.
    pub(super) fn take_ticket(&self, own: Rank, ticket: Ticket) {
        let Some(pair) = self.pair(own) else { return };
        if !pair.requests.take_ticket(ticket) {
            let (number, has_asked) = (ticket.number, true);
            self.send(own, ControlMessage::TicketReturn { number, has_asked });
        }
        self.note_left_over(pair);
    }

    /// Gives back a ticket that the peer recalls, unless it was used or has gone back.
    pub(super) fn give_back(&self, own: Rank, number: TicketNumber) {
        if self.pair(own).is_some_and(|pair| pair.requests.give_back(number)) {
            self.send(own, ControlMessage::TicketReturn { number, has_asked: false });
        }
    }

    /// Sends a ticket of a rank of this process. Returns `false` if the peer has ended.
    pub(crate) fn give_ticket(&self, own: Rank, ticket: Ticket) -> bool {
        let is_needed = !self.is_finished() && !self.cut_off.load(Ordering::Acquire);
        if is_needed {
            self.send(own, ControlMessage::Ticket(ticket));
        }
        is_needed
    }

    /// Asks for a ticket back that a rank of this process has given.
    #[cold]
    pub(crate) fn recall_ticket(&self, own: Rank, number: TicketNumber) {
        self.send(own, ControlMessage::TicketRecall { number });
    }

    /// Needs no tickets of the peer any more, as the ranks of this process finish.
    pub(super) fn end_tickets(&self) {
        for (pair, own) in self.pairs.iter().zip(self.distribution.here()) {
            let send = |message| self.send(Rank(own), message);
            pair.requests.end_tickets(
                |number, request, claim| {
                    send(ControlMessage::WindowRequest { number, request, claim });
                },
                |number| send(ControlMessage::TicketReturn { number, has_asked: false }),
            );
        }
    }

    /// Returns `true` if operations that the peer has granted have been posted.
    pub(super) fn has_posted_granted(&self) -> bool {
        self.pairs
            .iter()
            .all(|pair| !pair.requests.has_granted() && !pair.inbox_requests.has_granted())
    }

    /// Lets the puts ask that have waited for a ticket long enough.
    fn ask_if_due(&self, clock: &Clock) {
        for (pair, own) in self.pairs.iter().zip(self.distribution.here()) {
            if pair.requests.has_patient() {
                pair.requests.ask(clock.now_ns(), |number, request, claim| {
                    let asks = ControlMessage::WindowRequest { number, request, claim };
                    self.send(Rank(own), asks);
                });
            }
        }
    }

    /// Takes in the answer to an inbox request: the operation may land, under `arrival`.
    pub(super) fn take_inbox_grant(&self, own: Rank, number: u32, arrival: ArrivalNumber) {
        let Some(pair) = self.pair(own) else { return };
        pair.inbox_requests.grant(number, Some(arrival));
        self.note_left_over(pair);
    }

    /// Adds the notifications that wait for the peer to receive them to a hang report.
    pub(crate) fn describe_inbox_requests(&self, own: Rank, text: &mut String) {
        let Some(pair) = self.pair(own) else { return };
        for (id, count) in pair.inbox_requests.ids() {
            let (peer, operations) = (self.rank, counted(count, "operation"));
            let _ = writeln!(
                text,
                "  {own}: waits for {peer} to receive notification {id} ({operations})"
            );
        }
    }

    /// Takes in the answer to a window request: no window covers the operation.
    pub(super) fn take_refusal(&self, own: Rank, number: u32) {
        self.pair(own).into_iter().for_each(|pair| pair.requests.refuse(number));
    }

    /// Posts granted operations, as far as the send queues have room.
    fn post_granted(&self) {
        for pair in &self.pairs {
            pair.requests.post_granted();
            pair.inbox_requests.post_granted();
        }
    }

    /// Takes in the number of eager puts that have landed at the peer.
    pub(super) fn take_landed(&self, own: Rank, landed: u32) {
        self.pair(own).into_iter().for_each(|pair| pair.eager.take_landed(landed));
    }

    /// Notes that eager puts came from the peer.
    pub(super) fn note_eager_puts(&self, own: Rank, puts: u32) {
        self.pair(own).into_iter().for_each(|pair| pair.eager.note_received(puts));
    }

    /// Notes that eager puts of the peer have arrived in their round. Returns `true` if the peer needs
    /// nothing more, so that its arrivals may be complete.
    pub(crate) fn note_eager_arrival(&self, own: Rank, puts: u32) -> bool {
        if let Some(pair) = self.pair(own) {
            pair.eager.note_landed(puts);
            if self.is_report_due(pair) {
                self.attention.need();
            }
        }
        self.is_finished()
    }

    /// Returns `true` if the process of the peer has finished, and every operation that came before has
    /// arrived in its round.
    pub(crate) fn has_nothing_left(&self, own: Rank) -> bool {
        self.is_finished() && self.pair(own).is_none_or(|pair| pair.eager.have_landed())
    }

    /// Reports the eager puts of the peer that have landed, if they are half of its credit.
    fn report_landed(&self) {
        for (pair, own) in self.pairs.iter().zip(self.distribution.here()) {
            if self.is_report_due(pair) {
                self.send(Rank(own), ControlMessage::Landed { landed: pair.eager.report() });
            }
        }
    }

    fn is_report_due(&self, pair: &Pair) -> bool {
        pair.eager.unreported() as usize >= self.eager_credits().div_ceil(2)
    }

    /// Returns `true` if the next pass has something to do that no event announces.
    pub(crate) fn needs_pass(&self) -> bool {
        self.attention.is_needed()
    }

    /// Does what no message brings. What is left after that is left to the next pass.
    pub(super) fn attend(&self, clock: &Clock) {
        self.post_granted();
        self.ask_if_due(clock);
        self.report_landed();
        self.pairs.iter().for_each(|pair| self.note_left_over(pair));
    }

    /// Returns `true` if something of a pair waits for the next pass.
    fn waits(&self, pair: &Pair) -> bool {
        pair.requests.has_granted()
            || pair.requests.has_patient()
            || pair.inbox_requests.has_granted()
            || self.is_report_due(pair)
    }

    /// Counts an operation of the peer as granted.
    fn count_granted(&self, own: Rank) {
        self.pair(own).into_iter().for_each(|pair| {
            pair.granted.fetch_add(1, Ordering::AcqRel);
        });
    }

    /// Grants an operation of the peer outside rounds, which announces itself by `arrival`.
    pub(super) fn grant_inbox(&self, own: Rank, number: u32, arrival: ArrivalNumber) {
        self.count_granted(own);
        self.send(own, ControlMessage::InboxGrant { number, arrival });
    }

    /// Grants an operation of the peer, which may land at any time from now on.
    pub(super) fn grant(&self, own: Rank, number: u32) {
        self.count_granted(own);
        self.send(own, ControlMessage::WindowGrant { number });
    }

    /// Notes that a granted operation of the peer has arrived.
    pub(crate) fn note_arrival(&self, own: Rank) {
        let Some(pair) = self.pair(own) else { return };
        // A peer that reports more arrivals than grants gains nothing.
        let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
        let _ = pair.granted.fetch_update(set, fetch, |granted| granted.checked_sub(1));
    }

    /// Returns `true` if every operation of the peer that was granted here has landed.
    pub(crate) fn has_landed(&self, own: Rank) -> bool {
        let granted = self.pair(own).map_or(0, |pair| pair.granted.load(Ordering::Acquire));
        granted == 0 || self.cut_off.load(Ordering::Acquire)
    }

    /// Returns `true` if the process of the peer has sent that it has finished.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// Notes that the process of the peer has finished.
    pub(super) fn note_finished(&self) {
        self.finished.store(true, Ordering::Release);
        self.attention.note_finished();
    }

    /// Returns `true` if a remote peer of this process has finished.
    #[inline]
    pub(crate) fn has_one_finished(&self) -> bool {
        self.attention.has_finished()
    }

    /// Notes that the process of the peer may end at any time.
    pub(super) fn note_left(&self) {
        self.left.store(true, Ordering::Release);
    }

    /// Returns `true` if the process of the peer needs no message of this one.
    pub(super) fn has_left(&self) -> bool {
        self.left.load(Ordering::Acquire) || self.device.is_lost(self.process)
    }

    /// Returns `true` if the process of the peer is lost before it has sent that it has finished.
    pub(super) fn has_vanished(&self) -> bool {
        self.device.is_lost(self.process) && !self.is_finished()
    }

    /// Returns `true` if the peer is lost because it showed no life.
    pub(super) fn is_silent(&self) -> bool {
        self.device.is_silent(self.process)
    }

    /// Notes that the queue pairs to the peer are in error, and refuses all window requests.
    pub(super) fn fail(&self) {
        self.cut_off.store(true, Ordering::Release);
        for pair in &self.pairs {
            pair.requests.fail();
            pair.inbox_requests.fail();
        }
    }

    /// Drops all operations that wait for the peer, at the end of the run.
    pub(super) fn clear(&self) {
        for pair in &self.pairs {
            pair.requests.clear();
            pair.inbox_requests.clear();
        }
    }
}
