//! The responding end: acknowledgements, and notifications of receives.

use talpf_primitives::Ordering;

use crate::{
    QueuePairNumber,
    deferred::Deferred,
    port::{Packet, Response, Syndrome},
    queue_pair::{QueuePairCore, requester::PSN_MASK},
};

impl QueuePairCore {
    /// Returns `true` if this end is connected to queue pair `peer` of `process`.
    pub(crate) fn is_connected_to(&self, process: u32, peer: QueuePairNumber) -> bool {
        let remote = self.responder.remote.load(Ordering::Relaxed);
        self.remote_peer.process() == Some(process) && remote == peer.0
    }

    /// Returns `true` if this end has carried out the request of its peer with this sequence number.
    pub(crate) fn is_duplicate(&self, psn: u32) -> bool {
        let behind = self.responder.expected_psn.load(Ordering::Relaxed).wrapping_sub(psn);
        self.state.responds() && (1..=PSN_MASK / 2).contains(&(behind & PSN_MASK))
    }

    /// Returns the sequence number of the last request that was carried out.
    fn last_psn(&self) -> u32 {
        self.responder.expected_psn.load(Ordering::Relaxed).wrapping_sub(1) & PSN_MASK
    }

    /// Notes that a response says how far the requests of the peer were carried out.
    pub(crate) fn note_response(&self) {
        self.remote_peer.responded_psn.store(self.last_psn(), Ordering::Relaxed);
    }

    /// Takes this end off the list of those with requests to acknowledge. Returns the response, and
    /// the process that it is for, unless another response has said as much.
    pub(crate) fn acknowledgement(&self) -> Option<(u32, Response<'static>)> {
        let peer = &self.remote_peer;
        peer.is_listed.store(false, Ordering::Relaxed);
        let (process, psn) = (peer.process()?, self.last_psn());
        let is_known = peer.responded_psn.swap(psn, Ordering::Relaxed) == psn;
        if is_known || !self.state.responds() {
            return None;
        }
        let response = Response {
            to: QueuePairNumber(self.responder.remote.load(Ordering::Relaxed)),
            from: self.number,
            connection: peer.peer_connection.load(Ordering::Relaxed),
            psn,
            syndrome: Syndrome::Ack { original: 0 },
            payload: &[],
        };
        Some((process, response))
    }

    /// Lists this end for the next receive, of which it notifies the peer. The peer has been sent
    /// the response that no receive is posted.
    #[cold]
    pub(crate) fn notify_when_ready(&self, deferred: &mut Deferred) {
        self.remote_peer.notify_on_receive.store(true, Ordering::SeqCst);
        self.receives.wait(&self.this);
        if !self.receives.is_empty() {
            self.receive_posted(deferred);
        }
    }

    /// Handles a receive for which this end is listed: notifies the remote peer if it waits, and
    /// resumes the send queue.
    #[cold]
    pub(crate) fn receive_posted(&self, deferred: &mut Deferred) {
        let notify_on_receive = self.remote_peer.notify_on_receive.swap(false, Ordering::SeqCst);
        if let (true, Some(process)) = (notify_on_receive, self.remote_peer.process()) {
            let to = QueuePairNumber(self.responder.remote.load(Ordering::Relaxed));
            let ready = Packet::ReceiverReady { to, from: self.number };
            self.queue_packet(process, &ready, None, deferred);
        }
        self.resume(deferred);
    }
}
