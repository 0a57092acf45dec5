//! A rank in another process, which is reached by control messages.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use ibverbs_sim::Device;

use super::control_message::ControlMessage;
use super::eager_counts::EagerCounts;
use super::window_requests::{WindowRequest, WindowRequests};
use crate::numbers::Rank;
use crate::window::{Claim, Landing, Outcome};

/// A rank in another process.
pub(crate) struct RemotePeer {
    pub(crate) rank: Rank,
    device: Device,
    /// Largest number of window requests under way to the peer.
    credits: usize,
    requests: WindowRequests,
    eager: EagerCounts,
    /// Number of operations of the peer that were granted here and have not arrived.
    granted: AtomicU32,
    /// Set once the peer has sent [`ControlMessage::Finished`].
    finished: AtomicBool,
    /// Set once nothing of the peer lands here any more.
    cut_off: AtomicBool,
}

impl RemotePeer {
    pub(crate) fn new(rank: Rank, device: &Device, credits: usize) -> Self {
        RemotePeer {
            rank,
            device: device.clone(),
            credits,
            requests: WindowRequests::default(),
            eager: EagerCounts::default(),
            granted: AtomicU32::new(0),
            finished: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
        }
    }

    pub(super) fn send(&self, message: ControlMessage<'_>) {
        // The only error is a process that does not exist, and every rank has one.
        let _ = self.device.send_datagram(self.rank.0, &message.to_bytes());
    }

    /// Requests of the windows of the peer that an operation may land, or sends a short put with the
    /// request.
    pub(crate) fn request_window<L: Landing>(
        &self,
        request: WindowRequest,
        claim: Claim,
        mut operation: L,
    ) -> Outcome<L> {
        // Of an operation that is only noted, the number of grants is the number of notes.
        if !claim.raw
            && !self.cut_off.load(Ordering::Acquire)
            && let Some((remote, bytes)) = operation.eager_bytes()
            && self.eager.take_credit(self.credits)
        {
            let landed = self.eager.report();
            self.send(ControlMessage::Put { landed, request, claim, remote, bytes });
            operation.note_sent_eagerly();
            return Outcome::Posted(operation);
        }
        self.requests.add(request, operation, self.credits, |number| {
            self.send(ControlMessage::WindowRequest { number, request, claim });
        })
    }

    /// Takes in the answer to a window request: the operation may land.
    pub(super) fn take_grant(&self, number: u32) {
        self.requests.grant(number);
    }

    /// Takes in the answer to a window request: no window covers the operation.
    pub(super) fn take_refusal(&self, number: u32) {
        self.requests.refuse(number);
    }

    /// Posts granted operations, as far as the send queue has room.
    pub(super) fn post_granted(&self) {
        self.requests.post_granted();
    }

    /// Takes in the number of eager puts that have landed at the peer.
    pub(super) fn take_landed(&self, landed: u32) {
        self.eager.take_landed(landed);
    }

    /// Notes that an eager put came from the peer.
    pub(super) fn note_eager_put(&self) {
        self.eager.note_received();
    }

    /// Notes that an eager put of the peer has arrived in its round. Returns `true` if the peer needs
    /// nothing more, so that its arrivals may be complete.
    pub(crate) fn note_eager_arrival(&self, was_granted: bool) -> bool {
        if was_granted {
            self.note_arrival();
        }
        self.eager.note_landed();
        self.is_finished()
    }

    /// Returns `true` if the peer has sent its last control message, and every operation that came
    /// before has arrived in its round.
    pub(crate) fn has_nothing_left(&self) -> bool {
        self.is_finished() && self.eager.have_landed()
    }

    /// Reports the eager puts of the peer that have landed, if they are half of its credit.
    pub(super) fn report_landed(&self) {
        if self.eager.unreported() as usize >= self.credits.div_ceil(2) {
            self.send(ControlMessage::Landed { landed: self.eager.report() });
        }
    }

    /// Returns `true` if the next pass has something to do that no event announces.
    pub(super) fn waits_for_progress(&self) -> bool {
        self.requests.has_granted() || self.eager.unreported() as usize >= self.credits.div_ceil(2)
    }

    /// Counts an operation of the peer as granted.
    pub(super) fn count_granted(&self) {
        self.granted.fetch_add(1, Ordering::AcqRel);
    }

    /// Grants an operation of the peer, which may land at any time from now on.
    pub(super) fn grant(&self, number: u32) {
        self.count_granted();
        self.send(ControlMessage::WindowGrant { number });
    }

    /// Notes that a granted operation of the peer has arrived.
    pub(crate) fn note_arrival(&self) {
        // A peer that reports more arrivals than grants gains nothing.
        let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
        let _ = self.granted.fetch_update(set, fetch, |granted| granted.checked_sub(1));
    }

    /// Returns `true` if every operation of the peer that was granted here has landed.
    pub(crate) fn has_landed(&self) -> bool {
        self.granted.load(Ordering::Acquire) == 0 || self.cut_off.load(Ordering::Acquire)
    }

    /// Returns `true` if the peer has sent its last control message.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// Notes the last control message of the peer.
    pub(super) fn note_finished(&self) {
        self.finished.store(true, Ordering::Release);
    }

    /// Returns `true` if the process of the peer has ended.
    pub(super) fn is_lost(&self) -> bool {
        self.device.is_lost(self.rank.0)
    }

    /// Notes that the queue pair to the peer is in error, and refuses all window requests.
    pub(super) fn fail(&self) {
        self.cut_off.store(true, Ordering::Release);
        self.requests.fail();
    }

    /// Drops all operations that wait for the peer, at the end of the run.
    pub(super) fn clear(&self) {
        self.requests.clear();
    }
}
