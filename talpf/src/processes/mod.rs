//! Ranks in other processes: what in one process is reached through memory goes by letters here.
//!
//! A rank of [`hook`](crate::hook) is alone in its process. Its data moves as in one process, by
//! requests of the device to queue pairs elsewhere. The rest is said in small letters, datagrams
//! of the device, which arrive in order and before the requests that are sent after them:
//!
//! ```text
//! an operation that needs a window         origin ── ask ──► target: its window table decides
//!                                          origin ◄── go or refused ── target
//!                                          origin ── requests of the device ──► target
//! what the ranks of a collective call give each ── given ──► all
//! a failure                                where it was seen ── failed ──► all
//! nothing goes on                          each ── waiting ──► all
//! the end                                  each ── bye ──► all
//! ```
//!
//! So a put into a window costs a round trip more than in one process. If the run looks for
//! conflicts so does what goes to raw slots: the target notes it and lets it go. The target counts
//! what it has let go and what has arrived of it, by an immediate that says so; a window closes
//! when the two are equal.
//!
//! **Failures.** A letter that says so may overtake data, or come after the error of a request that
//! the failed rank has refused. Whatever comes first, the queue pairs to other processes go into
//! error: their requests are flushed, which returns guards, and nothing lands here any more, so
//! that windows can close. What a rank reports is its own error if it has one, else the first that
//! it learns of.
//!
//! **Trust.** Every field of a control message is checked before anything is done with it: a number
//! out of range, of another round, call or run, or a length that does not fit, ends the run with an
//! error that names the sender. Data is trusted more: keys cover whole slots, so a process that
//! writes without asking, or goes on before it is told to, is believed like a program that
//! registers raw slots. Processes of one run are of one user.
//!
//! **Who may touch what.** Any thread sends. One at a time takes in what has come, letters in
//! order, holding no lock of a rank. So whoever finds a process lost has read all that it has said.

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

/// The other processes of a run, as this one knows them.
pub(crate) struct Processes {
    device: Device,
    wire: Arc<CountingWire>,
    here: Rank,
    world: OnceLock<Weak<World>>,
    /// By rank; the place of this one is not used.
    peers: Box<[Peer]>,
    /// Operations of this rank that one target may have been asked for at a time.
    credits: usize,
    /// HeldGuard by whoever takes in what has come.
    taking_in: TryLock<()>,
    /// A failure was told to the others, or by one of them.
    failure_sent: AtomicBool,
    /// Nothing of other processes lands here any more.
    cut_off: AtomicBool,
    /// Set once all have met, if those of this machine have more workers than it has cores.
    oversubscribed: AtomicBool,
    termination: TerminationDetector,
}

#[derive(Default)]
struct Peer {
    requests: WindowRequests,
    /// Operations of the peer that our windows have let go and that have not arrived.
    granted: AtomicU32,
    /// It has said that it needs nothing more.
    gone: AtomicBool,
}

impl Processes {
    /// Those at the other ends of `wire`, over which `device` works.
    pub(crate) fn new(device: Device, wire: Arc<CountingWire>, credits: usize) -> Self {
        let (here, ranks) = (Rank(wire.process()), wire.processes());
        Processes {
            device,
            wire,
            here,
            world: OnceLock::new(),
            peers: (0..ranks).map(|_| Peer::default()).collect(),
            credits,
            taking_in: TryLock::default(),
            failure_sent: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
            oversubscribed: AtomicBool::new(false),
            termination: TerminationDetector::new(ranks),
        }
    }

    /// Says whose other processes they are.
    pub(crate) fn belong_to(&self, world: Weak<World>) {
        let _ = self.world.set(world);
    }

    /// All ranks but this one.
    fn others(&self) -> impl Iterator<Item = (Rank, &Peer)> {
        let ranks = self.peers.iter().enumerate().map(|(rank, peer)| (Rank(rank as u32), peer));
        ranks.filter(|(rank, _)| *rank != self.here)
    }

    fn peer(&self, rank: Rank) -> &Peer {
        &self.peers[rank.index()]
    }

    fn send(&self, rank: Rank, message: ControlMessage<'_>) {
        // Every rank has a process, so this one has.
        let _ = self.device.send_datagram(rank.0, &message.to_bytes());
    }

    fn send_to_all(&self, message: ControlMessage<'_>) {
        self.others().for_each(|(rank, _)| self.send(rank, message));
    }

    /// Asks the windows of `request.target` to let an operation land.
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

    /// Gives the part of this rank in a collective call.
    pub(crate) fn give(&self, number: u64, part: &[u8]) {
        self.send_to_all(ControlMessage::Gather { number, part });
    }

    /// Whether everything of `source` that the windows of this rank have let go has landed.
    pub(crate) fn has_landed(&self, source: Rank) -> bool {
        self.peer(source).granted.load(Ordering::Acquire) == 0
            || self.cut_off.load(Ordering::Acquire)
    }

    /// Something of `source` that a window has let go has arrived.
    pub(crate) fn has_arrived(&self, source: Rank) {
        let granted = &self.peer(source).granted;
        // A peer that says more than is true gains nothing.
        let _ = granted.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1));
    }

    /// The run has failed. Tells the others, unless one of them has told us.
    pub(crate) fn broadcast_failure(&self, first: Rank, reason: &str) {
        if !self.failure_sent.swap(true, Ordering::SeqCst) {
            self.send_to_all(ControlMessage::Failed { first, reason });
        }
    }

    /// After the queue pairs to other processes have gone into error.
    pub(crate) fn fail(&self) {
        self.cut_off.store(true, Ordering::Release);
        self.others().for_each(|(_, peer)| peer.requests.fail());
    }

    /// Returns whether the processes of this machine have more workers than it has cores.
    #[inline]
    pub(crate) fn are_oversubscribed(&self) -> bool {
        self.oversubscribed.load(Ordering::Relaxed)
    }

    /// Whether a rank has said that it needs nothing more.
    pub(crate) fn is_gone(&self, rank: Rank) -> bool {
        self.peer(rank).gone.load(Ordering::Acquire)
    }

    /// Those that have said so.
    pub(crate) fn gone(&self) -> impl Iterator<Item = Rank> {
        self.others().map(|(rank, _)| rank).filter(|rank| self.is_gone(*rank))
    }

    pub(crate) fn clear(&self) {
        self.peers.iter().for_each(|peer| peer.requests.clear());
    }

    /// Takes in what other processes have sent, and goes on with what they have let go. Says
    /// whether there was anything; no while another thread is at it.
    pub(crate) fn progress(self: &Arc<Self>, world: &World) -> bool {
        let Some(_taking_in) = self.taking_in.try_lock() else {
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
            self.take_in(world, Rank(from), &bytes);
        }
        for (rank, peer) in self.others() {
            peer.requests.post_granted();
            if self.device.is_lost(rank.0) && !self.is_gone(rank) {
                world.fail_with_reason(rank, "its process has ended");
            }
        }
        self.termination.note_pass();
        taken.is_ok_and(|packets| packets > 0)
    }

    fn take_in(self: &Arc<Self>, world: &World, from: Rank, bytes: &[u8]) {
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
            Some(ControlMessage::WindowGrant { number }) => peer.requests.go(number),
            Some(ControlMessage::WindowRefusal { number }) => peer.requests.refuse(number),
            Some(ControlMessage::Gather { number, part }) => {
                let part = Part::from_bytes(part).ok_or("a part of no collective call".to_owned());
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
            Some(ControlMessage::Finished) => peer.gone.store(true, Ordering::Release),
            Some(ControlMessage::Idle(traffic)) if self.termination.hear(from, traffic) => {}
            Some(ControlMessage::WindowRequest { .. } | ControlMessage::Idle(_)) | None => {
                let what = "a control message that it may not send".to_owned();
                world.fail(&[self.here], &Error::BadControlMessage { rank: from, what });
            }
        }
    }

    /// Brings an operation of a rank elsewhere to the windows of this one.
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
            grant.go();
            return;
        }
        match world.land(request, claim, true, grant) {
            Outcome::Posted(_) | Outcome::Parked => {}
            // Whoever asks keeps to its credit, so here there is always some.
            Outcome::Refused(grant) | Outcome::Retry(grant) => grant.refuse(),
        }
    }
}
