//! Ranks in other processes, which are reached by control messages instead of shared memory.
//!
//! A rank of [`hook`](crate::hook) is alone in its process. Its data moves as in one process, by
//! work requests to remote queue pairs. Everything else goes by small control messages, datagrams
//! of the device, which arrive in order and before the requests that are sent after them:
//!
//! ```text
//! an operation that needs a window   origin ── window request ──► target: its window table decides
//!                                    origin ◄── window grant or refusal ── target
//!                                    origin ── work requests ──► target
//! parts of a collective call         each ── gather ──► all
//! a failure                          the rank that found it ── failed ──► all
//! termination detection              each ── idle ──► all
//! the end                            each ── finished ──► all
//! ```
//!
//! So a put into a window costs a round trip more than in one process. If the run checks for
//! conflicts so does an operation on a raw slot: the target notes the operation and grants it. The
//! target counts the operations that it has granted, and those of them that have arrived, which
//! their immediates mark; a window closes when the two counts are equal.
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
//! holding no lock of a rank. So a thread that finds a process lost has handled all its messages.

mod control_message;
mod counting_wire;
mod finish;
mod handshake;
mod placement;
mod termination;
mod window_grant;
mod window_requests;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use ibverbs_sim::{Device, Wire};
use talpf_primitives::TryLock;

use self::control_message::ControlMessage;
pub(crate) use self::counting_wire::CountingWire;
use self::termination::TerminationDetector;
use self::window_grant::WindowGrant;
pub(crate) use self::window_requests::WindowRequest;
use self::window_requests::WindowRequests;
use crate::all_gather::Part;
use crate::error::Error;
use crate::numbers::Rank;
use crate::window::{Claim, Landing, Outcome};
use crate::world::World;

/// The other processes of a run, from the view of this one.
pub(crate) struct Processes {
    device: Device,
    wire: Arc<CountingWire>,
    here: Rank,
    world: OnceLock<Weak<World>>,
    /// Remote ranks, by rank; the entry of this one is not used.
    peers: Box<[RemotePeer]>,
    /// Largest number of window requests under way to one target.
    credits: usize,
    /// Lock of the thread that handles what has arrived.
    progressing: TryLock<()>,
    /// Set once a failure was sent to the others, or received from one of them.
    failure_sent: AtomicBool,
    /// Set once nothing of other processes lands here any more.
    cut_off: AtomicBool,
    /// Set at the handshake if the processes of this machine have more workers than it has cores.
    oversubscribed: AtomicBool,
    termination: TerminationDetector,
}

/// A rank in another process.
#[derive(Default)]
struct RemotePeer {
    requests: WindowRequests,
    /// Number of operations of the peer that were granted here and have not arrived.
    granted: AtomicU32,
    /// Set once the peer has sent [`ControlMessage::Finished`].
    finished: AtomicBool,
}

impl Processes {
    /// Makes the processes at the other ends of `wire`, which `device` sends over.
    pub(crate) fn new(device: Device, wire: Arc<CountingWire>, credits: usize) -> Self {
        let (here, ranks) = (Rank(wire.process()), wire.processes());
        Processes {
            device,
            wire,
            here,
            world: OnceLock::new(),
            peers: (0..ranks).map(|_| RemotePeer::default()).collect(),
            credits,
            progressing: TryLock::default(),
            failure_sent: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
            oversubscribed: AtomicBool::new(false),
            termination: TerminationDetector::new(ranks),
        }
    }

    /// Sets the world of the rank of this process.
    pub(crate) fn set_world(&self, world: Weak<World>) {
        let _ = self.world.set(world);
    }

    /// Iterates over all ranks but this one.
    fn others(&self) -> impl Iterator<Item = (Rank, &RemotePeer)> {
        let ranks = self.peers.iter().enumerate().map(|(rank, peer)| (Rank(rank as u32), peer));
        ranks.filter(|(rank, _)| *rank != self.here)
    }

    fn peer(&self, rank: Rank) -> &RemotePeer {
        &self.peers[rank.index()]
    }

    fn send(&self, rank: Rank, message: ControlMessage<'_>) {
        // The only error is a process that does not exist, and every rank has one.
        let _ = self.device.send_datagram(rank.0, &message.to_bytes());
    }

    fn send_to_all(&self, message: ControlMessage<'_>) {
        self.others().for_each(|(rank, _)| self.send(rank, message));
    }

    /// Requests of the windows of `request.target` that an operation may land.
    pub(crate) fn request_window<L: Landing>(
        &self,
        request: WindowRequest,
        claim: Claim,
        operation: L,
    ) -> Outcome<L> {
        let requests = &self.peer(request.target).requests;
        requests.add(request, operation, self.credits, |number| {
            self.send(request.target, ControlMessage::WindowRequest { number, request, claim });
        })
    }

    /// Sends the part of this rank in a collective call to all others.
    pub(crate) fn give(&self, number: u64, part: &[u8]) {
        self.send_to_all(ControlMessage::Gather { number, part });
    }

    /// Returns `true` if every operation of `source` that was granted here has landed.
    pub(crate) fn has_landed(&self, source: Rank) -> bool {
        self.peer(source).granted.load(Ordering::Acquire) == 0
            || self.cut_off.load(Ordering::Acquire)
    }

    /// Notes that a granted operation of `source` has arrived.
    pub(crate) fn note_arrival(&self, source: Rank) {
        let granted = &self.peer(source).granted;
        // A peer that reports more arrivals than grants gains nothing.
        let _ = granted.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1));
    }

    /// Sends the failure of the run to the others, unless one of them has sent it.
    pub(crate) fn broadcast_failure(&self, first: Rank, reason: &str) {
        if !self.failure_sent.swap(true, Ordering::SeqCst) {
            self.send_to_all(ControlMessage::Failed { first, reason });
        }
    }

    /// Refuses all window requests, once the queue pairs to other processes are in error.
    pub(crate) fn fail(&self) {
        self.cut_off.store(true, Ordering::Release);
        self.others().for_each(|(_, peer)| peer.requests.fail());
    }

    /// Returns `true` if the processes of this machine have more workers than it has cores.
    #[inline]
    pub(crate) fn are_oversubscribed(&self) -> bool {
        self.oversubscribed.load(Ordering::Relaxed)
    }

    /// Returns `true` if a rank has sent its last control message.
    pub(crate) fn is_finished(&self, rank: Rank) -> bool {
        self.peer(rank).finished.load(Ordering::Acquire)
    }

    /// Iterates over the ranks that have sent their last control message.
    pub(crate) fn finished(&self) -> impl Iterator<Item = Rank> {
        self.others().map(|(rank, _)| rank).filter(|rank| self.is_finished(*rank))
    }

    pub(crate) fn clear(&self) {
        self.peers.iter().for_each(|peer| peer.requests.clear());
    }

    /// Handles what other processes have sent, and posts the operations that they have granted.
    /// Returns `true` if packets have arrived; `false` while another thread does this.
    pub(crate) fn progress(self: &Arc<Self>, world: &World) -> bool {
        let Some(_progressing) = self.progressing.try_lock() else {
            return false;
        };
        let taken = self.device.progress();
        if let Err(error) = &taken {
            world.fail(&[self.here], &Error::Device(error.clone()));
        }
        if let Some(panic) = self.wire.panic() {
            world.fail_with_reason(self.here, &format!("the wire has panicked: {panic}"));
        }
        while let Some((from, bytes)) = self.device.receive_datagram() {
            self.handle_message(world, Rank(from), &bytes);
        }
        for (rank, peer) in self.others() {
            peer.requests.post_granted();
            if self.device.is_lost(rank.0) && !self.is_finished(rank) {
                world.fail_with_reason(rank, "its process has ended");
            }
        }
        self.termination.note_pass();
        taken.is_ok_and(|packets| packets > 0)
    }

    fn handle_message(self: &Arc<Self>, world: &World, from: Rank, bytes: &[u8]) {
        let peer = self.peer(from);
        match ControlMessage::from_bytes(bytes) {
            Some(ControlMessage::WindowRequest { number, request, claim })
                if request.target == self.here && claim.source == from =>
            {
                match world.check_ahead(self.here, from, request.lane, request.round) {
                    Ok(()) => self.take_request(number, request, claim),
                    Err(error) => world.fail(&[self.here], &error),
                }
            }
            Some(ControlMessage::WindowGrant { number }) => peer.requests.grant(number),
            Some(ControlMessage::WindowRefusal { number }) => peer.requests.refuse(number),
            Some(ControlMessage::Gather { number, part }) => {
                let part =
                    Part::from_bytes(part).ok_or("a part of an unknown collective call".to_owned());
                let given = part
                    .and_then(|part| world.all_gather.give_remote(self.here, from, number, part));
                if let Err(what) = given {
                    world.fail(&[self.here], &Error::BadControlMessage { rank: from, what });
                }
            }
            Some(ControlMessage::Failed { first, reason }) => {
                self.failure_sent.store(true, Ordering::SeqCst);
                world.fail_with_reason(first, reason);
            }
            Some(ControlMessage::Finished) => peer.finished.store(true, Ordering::Release),
            Some(ControlMessage::Idle(traffic)) if self.termination.receive(from, traffic) => {}
            Some(ControlMessage::WindowRequest { .. } | ControlMessage::Idle(_)) | None => {
                let what = "a control message that is malformed or not allowed".to_owned();
                world.fail(&[self.here], &Error::BadControlMessage { rank: from, what });
            }
        }
    }

    /// Passes an operation of a remote rank to the windows of this one.
    fn take_request(self: &Arc<Self>, number: u32, request: WindowRequest, claim: Claim) {
        // Without a world the run is over.
        let Some(world) = self.world.get().and_then(Weak::upgrade) else {
            return;
        };
        let grant = WindowGrant {
            world: Arc::clone(&world),
            processes: Arc::clone(self),
            number,
            request,
            claim,
        };
        if claim.raw {
            world.rank(self.here).windows.note(request.lane, request.round, claim);
            grant.grant();
            return;
        }
        match world.land(request, claim, true, grant) {
            Outcome::Posted(_) | Outcome::Parked => {}
            // A remote origin limits its requests to its credit, so this table always has some.
            Outcome::Refused(grant) | Outcome::Retry(grant) => grant.refuse(),
        }
    }
}
