//! Ranks in other processes, which are reached by control messages instead of shared memory.
//!
//! A process has one rank ([`hook`](crate::hook())) or several
//! ([`exec_on_rail`](crate::exec_on_rail)). Data moves as in one process, by work requests to remote
//! queue pairs. Everything else goes by small control messages, datagrams
//! of the device, which arrive in order and no later than the requests that are sent after them:
//!
//! ```text
//! a short put into a window           origin ── put, with its bytes ──► target: its window table
//!                                            decides, and the target writes the bytes
//! an atomic in a window               origin ── atomic ──► target: its window table decides, and the target
//!                                            carries it out
//!                                    origin ◄── result, or a grant or refusal as below ── target
//! other operations with a window      origin ── window request ──► target: its window table decides
//!                                    origin ◄── window grant or refusal ── target
//!                                    origin ── work requests ──► target
//! a put that repeats an earlier one   origin ◄── ticket ── target, as its window opens
//!                                    origin ── work requests ──► target
//! a ticket that is in the way        origin ◄── ticket recall ── target
//!                                    origin ── ticket return ──► target, unless it was used
//! parts of a collective call         each ── gather ──► all
//! a name of a slot                   its rank ── published ──► all
//! a failure                          the rank that found it ── failed ──► all
//! termination detection              each ── idle ──► all
//! clocks, if the run is traced     first ── question ──► each, which answers; at start and end
//! the end                            each ── finished ──► all, and once all have: left
//! ```
//!
//! So a short put costs one message, which it shares with those of its body that follow it, an atomic one each way,
//! and any other operation with a window a round trip more than in one process, unless there is a ticket for it. If the run checks for
//! conflicts so does an operation on a raw slot: the target notes the operation and grants it. The
//! target counts the operations that it has granted, and those of them that have arrived, which
//! their immediates mark; a window closes when the two counts are equal, and all that the target has
//! written itself is there. A put by a ticket has the number of the ticket in its immediate.
//!
//! **Failures.** The message of a failure may overtake data, or come after the error of a request
//! that the failed rank has refused. Whatever comes first, the queue pairs to other processes go
//! into error: their requests are flushed, which returns guards, and nothing lands here any more,
//! so that windows can close. A rank reports its own error if it has one, and otherwise the first
//! that it learns of.
//!
//! **Trust.** Every field of a control message is checked before anything is done with it: a number
//! out of range, of another round, call or run, or a length that does not fit, ends the run with an
//! error that names the sender. Data is trusted more: keys cover whole slots, so a process that
//! writes without a grant is trusted like a program that registers raw slots. Processes of one run
//! belong to one user.
//!
//! **Threads.** Any thread sends. One thread at a time handles what has arrived, messages in order,
//! holding no lock of a rank. So a thread that finds a process lost has handled all its messages. Of
//! the polling tasks of a process that of the first rank sleeps on the event of the rail; a
//! completion wakes the others. If a thread serves the other processes, no polling task does.

mod attention;
mod catching_wire;
mod clock_exchange;
mod clock_readings;
mod control_message;
mod distribution;
mod eager_atomic;
mod eager_counts;
mod eager_put;
mod eager_puts;
mod encoding;
mod event_watch;
mod finish;
mod handshake;
mod held_tickets;
mod inbox_grant;
mod loss;
mod notified_put;
mod placement;
mod progress;
mod progress_thread;
mod put_list;
mod remote_peer;
mod result_cells;
mod segments;
mod termination;
#[cfg(all(test, not(talpf_loom)))]
mod ticket_model;
mod window_grant;
mod window_requests;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use ibverbs_sim::Device;
use talpf_primitives::{Mutex, TryLock};
use talpf_runtime::Clock;

pub(crate) use self::attention::Attention;
pub(crate) use self::catching_wire::CatchingWire;
use self::clock_readings::ClockReadings;
use self::control_message::{ControlMessage, Envelope};
pub(crate) use self::distribution::Distribution;
use self::eager_atomic::ResultCellsOfRanks;
use self::eager_put::EagerPut;
pub(crate) use self::event_watch::Sleep;
use self::event_watch::{EventSleeper, EventWatch};
pub(crate) use self::progress_thread::ProgressThread;
use self::put_list::{ListedPut, PutList};
pub(crate) use self::remote_peer::RemotePeer;
pub(crate) use self::segments::Segments;
use self::termination::TerminationDetector;
use self::window_grant::WindowGrant;
pub(crate) use self::window_requests::WindowRequest;
use crate::all_gather::{AllGather, Part};
use crate::control_plane;
use crate::error::Error;
use crate::failure::RunFailure;
use crate::names::{Names, Published};
use crate::numbers::{Rank, TicketNumber};
use crate::peer::{LocalPeer, Peers};
use crate::window::{Claim, Kind, Outcome, Parked, TicketEnd, no_ticket};

/// A device that reaches other processes, and the wire under it, if it has one.
pub(crate) struct Remotes {
    pub(crate) device: Device,
    pub(crate) distribution: Distribution,
    pub(crate) wire: Option<Arc<CatchingWire>>,
    pub(crate) clock: Clock,
    /// Event of the thread that serves other processes, if there is one.
    pub(crate) thread: Option<Arc<OwnedFd>>,
    /// Flags of all remote peers.
    pub(crate) attention: Arc<Attention>,
}

/// A message of another process.
struct Received<'a> {
    /// The rank `source`.
    peer: &'a RemotePeer,
    source: Rank,
    target: Rank,
    message: ControlMessage<'a>,
}

/// The other processes of a run, from the view of this one.
pub(crate) struct Processes {
    device: Device,
    /// The wire under the device, if it has one.
    wire: Option<Arc<CatchingWire>>,
    distribution: Distribution,
    peers: Peers,
    failure: Arc<RunFailure>,
    all_gather: Arc<AllGather>,
    names: Arc<Names>,
    /// Lock of the thread that handles what has arrived.
    progressing: TryLock<()>,
    /// Set once a failure was sent to the others, or received from one of them.
    failure_sent: AtomicBool,
    /// Set at the handshake if the processes of this machine have more workers than it has cores.
    oversubscribed: AtomicBool,
    termination: TerminationDetector,
    attention: Arc<Attention>,
    /// Number of lost processes that were found lost. Only the thread that makes progress writes it.
    losses: AtomicU32,
    clocks: ClockReadings,
    clock: Clock,
    /// Eager puts that a window has admitted, and that found no room in the queue pair. Only the
    /// thread that handles what has arrived takes the lock.
    unposted: Mutex<VecDeque<EagerPut>>,
    /// Set while there may be some.
    has_unposted: AtomicBool,
    /// Words for the results of atomics of other processes, of each rank of this one.
    result_cells: ResultCellsOfRanks,
    /// Atomics of this process that have their results, which their drop ends.
    ended: Mutex<Vec<Box<dyn Parked>>>,
    events: Arc<EventWatch>,
    /// `true` if a thread serves the other processes, and no polling task.
    has_thread: bool,
}

impl Processes {
    /// Makes the other processes of a run.
    pub(crate) fn new(
        Remotes { device, distribution, wire, clock, thread, attention }: Remotes,
        peers: Peers,
        failure: Arc<RunFailure>,
        (all_gather, names): (Arc<AllGather>, Arc<Names>),
    ) -> Self {
        let own = peers.locals().next();
        let has_thread = thread.is_some();
        let sleeper = thread.map_or_else(
            || EventSleeper::Task(own.map(Arc::downgrade).unwrap_or_default()),
            EventSleeper::Thread,
        );
        let events = Arc::new(EventWatch::new(sleeper));
        let watch = Arc::downgrade(&events);
        device.call_if_unsent(move || {
            if let Some(events) = watch.upgrade() {
                events.wake();
            }
        });
        control_plane::connects(distribution.processes(), &distribution.here());
        Processes {
            device,
            wire,
            distribution,
            peers,
            failure,
            all_gather,
            names,
            progressing: TryLock::default(),
            failure_sent: AtomicBool::new(false),
            oversubscribed: AtomicBool::new(false),
            termination: TerminationDetector::new(distribution.processes()),
            attention,
            losses: AtomicU32::new(0),
            clocks: ClockReadings::default(),
            clock,
            unposted: Mutex::default(),
            has_unposted: AtomicBool::new(false),
            ended: Mutex::default(),
            result_cells: distribution.here().map(|_| OnceLock::new()).collect(),
            events,
            has_thread,
        }
    }

    /// Sends a message of a rank of this process to all other processes.
    fn send_to_all(&self, own: Rank, message: ControlMessage<'_>) {
        for process in self.distribution.others() {
            let target = Rank(self.distribution.of(process).start);
            let head = message.head(Envelope { source: own, target });
            // The only error is a process that does not exist.
            let _ = self.device.send_datagram(process, &[head.bytes(), message.data()]);
        }
    }

    /// Returns `true` if the polling task of a rank serves the other processes.
    #[inline]
    pub(crate) fn are_served_by(&self, own: Rank) -> bool {
        !self.has_thread && own == self.speaker()
    }

    /// Returns the rank that speaks for this process.
    fn speaker(&self) -> Rank {
        self.distribution.first_here()
    }

    /// Sends the part of a rank of this process in a collective call to all other processes.
    pub(crate) fn give(&self, own: Rank, number: u64, part: &[u8]) {
        self.send_to_all(own, ControlMessage::Gather { number, part });
    }

    /// Sends a name that a rank of this process has published to all other processes.
    pub(crate) fn publish(&self, own: Rank, name: &str, published: &Published) {
        let text = [name, &published.element].concat();
        let (slot, name_bytes) = (published.slot, name.len() as u32);
        self.send_to_all(own, ControlMessage::Published { slot, name_bytes, text: &text });
    }

    /// Takes in a name that `owner` has published in another process.
    ///
    /// **Errors**: it cannot have done so, for this reason.
    fn take_published(
        &self,
        owner: Rank,
        slot: u32,
        (name_bytes, text): (u32, &str),
    ) -> Result<(), String> {
        let (name, element) = text
            .split_at_checked(name_bytes as usize)
            .ok_or_else(|| format!("a name of {name_bytes} bytes in a text of {}", text.len()))?;
        let published = Published { slot, element: element.into() };
        match self.names.publish(owner, name, published) {
            Err(error @ (Error::Name(_) | Error::Limit { .. })) => Err(error.to_string()),
            // After a failure of the run nobody waits for names.
            _ => Ok(()),
        }
    }

    /// Sends the failure of the run to the others, unless one of them has sent it.
    pub(crate) fn broadcast_failure(&self, first: Rank, reason: &str) {
        if !self.failure_sent.swap(true, Ordering::SeqCst) {
            self.send_to_all(self.speaker(), ControlMessage::Failed { first, reason });
        }
    }

    /// Refuses all window requests, once the queue pairs to other processes are in error.
    pub(crate) fn fail(&self) {
        self.clocks.fail();
        self.peers.remotes().for_each(RemotePeer::fail);
    }

    /// Returns `true` if the processes of this machine have more workers than it has cores.
    #[inline]
    pub(crate) fn are_oversubscribed(&self) -> bool {
        self.oversubscribed.load(Ordering::Relaxed)
    }

    pub(crate) fn clear(&self) {
        self.unposted.lock().clear();
        self.peers.remotes().for_each(RemotePeer::clear);
    }

    /// Iterates over the ranks of this process.
    #[inline]
    fn here(&self) -> impl Iterator<Item = &LocalPeer> {
        self.distribution.here().filter_map(|rank| self.peers.local(Rank(rank)))
    }

    /// Returns the message of another process, if its ranks are those of that process and of this one.
    fn read<'a>(&'a self, process: u32, bytes: &'a [u8]) -> Result<Received<'a>, String> {
        let malformed = || "a control message that is malformed or not allowed".to_owned();
        let (Envelope { source, target }, message) =
            ControlMessage::from_bytes(bytes).ok_or_else(malformed)?;
        let peer = self.distribution.of(process).contains(&source.0).then_some(source);
        let peer = peer.and_then(|source| self.peers.remote(source));
        let here = self.distribution.index_here(target);
        let (Some(peer), Some(_)) = (peer, here) else {
            let each = self.distribution.here().len();
            return Err(format!(
                "a control message from {source} to {target}, where each process has {each} ranks"
            ));
        };
        if message.is_between(source, target) {
            Ok(Received { peer, source, target, message })
        } else {
            Err(malformed())
        }
    }

    fn handle_message(&self, process: u32, bytes: &[u8]) {
        let handled = self.read(process, bytes).and_then(|received| self.handle(process, received));
        if let Err(what) = handled {
            let rank = Rank(self.distribution.of(process).start);
            self.failure.fail(&[self.speaker()], &Error::BadControlMessage { rank, what });
        }
    }

    /// Handles a message of another process.
    ///
    /// **Errors**: it makes no sense, for this reason.
    fn handle(&self, process: u32, received: Received<'_>) -> Result<(), String> {
        let Received { peer, source, target, message } = received;
        match message {
            ControlMessage::WindowRequest { number, request, claim } => {
                if self.may_be_in(source, request) {
                    self.take_request(number, request, claim);
                }
            }
            ControlMessage::Put { landed, request, claim, remote, bytes } => {
                let put = ListedPut::only(&claim, remote, bytes.len());
                let put = put.ok_or("a put with the claim of something else")?;
                peer.take_landed(target, landed);
                peer.note_eager_puts(target, 1);
                self.take_eager_puts(source, request, (&[put], bytes));
            }
            ControlMessage::Puts { landed, request, puts } => {
                let list = PutList::from_bytes(puts).ok_or("a list of puts that is malformed")?;
                peer.take_landed(target, landed);
                peer.note_eager_puts(target, list.puts.len() as u32);
                self.take_eager_puts(source, request, (&list.puts, list.bytes));
            }
            ControlMessage::Landed { landed } => peer.take_landed(target, landed),
            ControlMessage::InboxRequest { number, notified } => {
                self.take_inbox_request(target, number, notified);
            }
            ControlMessage::NotifiedPut { landed, notified, remote, bytes } => {
                peer.take_landed(target, landed);
                peer.note_eager_puts(target, 1);
                self.take_notified_put(target, notified, remote, bytes);
            }
            ControlMessage::InboxGrant { number, arrival } => {
                peer.take_inbox_grant(target, number, arrival);
            }
            ControlMessage::InboxRefusal { ids, notified } => {
                let error = Error::outside_inbox(&notified, source, ids);
                self.failure.fail(&[target], &error);
            }
            ControlMessage::PutRefusal { request, claim } => {
                let error = Error::outside_window(&claim, source, request.lane, request.round);
                self.failure.fail(&[target], &error);
            }
            ControlMessage::Ticket(ticket) => {
                let Claim { kind, raw, .. } = ticket.claim;
                if kind != Kind::Write || raw {
                    return Err("a ticket for something else than a put".to_owned());
                }
                peer.take_ticket(target, ticket);
            }
            ControlMessage::TicketRecall { number } => peer.give_back(target, number),
            ControlMessage::TicketReturn { number, has_asked } => {
                let end = if has_asked { TicketEnd::Late } else { TicketEnd::Unused };
                self.end_ticket((peer, target), number, end)?;
            }
            ControlMessage::Atomic { number, request, claim, remote, update } => {
                if claim.kind != Kind::Update || claim.raw {
                    return Err("an atomic with the claim of something else".to_owned());
                }
                if self.may_be_in(source, request) {
                    self.take_eager_atomic(number, (request, claim), (remote, update));
                }
            }
            ControlMessage::AtomicResult { number, value } => {
                self.ended.lock().extend(peer.take_result(target, number, value)?);
            }
            ControlMessage::WindowGrant { number } => peer.take_grant(target, number),
            ControlMessage::WindowRefusal { number } => peer.take_refusal(target, number),
            ControlMessage::Gather { number, part } => {
                let part = Part::from_bytes(part).ok_or("a part of an unknown collective call")?;
                self.all_gather.give_remote(source, number, part)?;
            }
            ControlMessage::Published { slot, name_bytes, text } => {
                self.take_published(source, slot, (name_bytes, text))?;
            }
            ControlMessage::Failed { first, reason } => {
                self.failure_sent.store(true, Ordering::SeqCst);
                self.failure.fail_with_reason(first, reason);
            }
            ControlMessage::Finished => self.note_finished(process),
            ControlMessage::Left => self.peers_of(process).for_each(RemotePeer::note_left),
            ControlMessage::ClockQuestion { number } => {
                self.take_clock_question(process, number)?;
            }
            ControlMessage::ClockAnswer { number, time_ns } => {
                self.take_clock_answer(process, number, time_ns)?;
            }
            ControlMessage::ClockReading(reading) => self.take_clock_reading(process, reading)?,
            ControlMessage::Idle(traffic) => {
                if !self.termination.receive(process, traffic) {
                    return Err("a report of packets that is malformed".to_owned());
                }
            }
        }
        Ok(())
    }

    /// Returns `true` if a rank may be in the round of a request by now; otherwise the run fails.
    fn may_be_in(&self, source: Rank, request: WindowRequest) -> bool {
        let WindowRequest { target, lane, round } = request;
        let checked = self.peers.check_ahead(target, source, lane, round);
        checked.inspect_err(|error| self.failure.fail(&[target], error)).is_ok()
    }

    /// Takes back a ticket that a rank of this process has given to a peer.
    ///
    /// **Errors**: the peer has no such ticket.
    fn end_ticket(
        &self,
        (peer, target): (&RemotePeer, Rank),
        number: TicketNumber,
        end: TicketEnd,
    ) -> Result<(), String> {
        let Some(own) = self.peers.local(target) else { return Ok(()) };
        let is_known = own.windows.end_ticket(number, peer.rank, end).is_some();
        // A failure of the run has ended all tickets.
        if !is_known && !self.failure.has_failed() {
            return Err(no_ticket(number));
        }
        own.ring_doorbell();
        Ok(())
    }

    /// Passes an operation of a remote rank to the windows of this one.
    fn take_request(&self, number: u32, request: WindowRequest, claim: Claim) {
        let (peers, failure) = (self.peers.clone(), Arc::clone(&self.failure));
        let grant = WindowGrant { peers, failure, number, request, claim };
        if claim.raw {
            self.peers.note(request.target, request.lane, request.round, claim);
            grant.grant();
            return;
        }
        match self.peers.land(request, claim, true, grant) {
            Outcome::Posted(_) | Outcome::Parked => {}
            // A remote origin limits its requests to its credit, so this table always has some.
            Outcome::Refused(grant) | Outcome::Retry(grant) => grant.refuse(),
        }
    }
}
