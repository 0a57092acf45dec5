//! Peers in other processes: requests become packets, and wait for their responses as others wait
//! for a receive.
//!
//! The holder of the gate makes the packet of a request and stalls; the packet is sent once the
//! gate is free. The thread that delivers the response stores it in `response` and resumes the
//! queue pair; the request is then attempted again and finds the response. A resume without a
//! response changes nothing.
//!
//! Two packets of one request may overtake each other, between the gate and the wire: the response
//! to the last one counts, and the peer recognises the other as a duplicate by its sequence number.
//!
//! The peer stores no request for which it has no receive. It responds so, lists itself for the
//! next receive and checks for one again, in this order: so the notification of a receive comes
//! after the response that none was posted.

use talpf_primitives::{AtomicBool, AtomicU32, Mutex, Ordering};

use crate::{
    CompletionStatus, SendFlags, SendWorkRequest,
    deferred::Deferred,
    link::AttemptError,
    queue_pair::{LocalBuffer, QueuePairCore, requester::Requester, retry::Retry},
    wire::{OutgoingPacket, Packet, Request, Response, Syndrome},
};

/// Number that stands for no other process.
const LOCAL: u32 = u32::MAX;

/// State of the connection to a peer in another process, shared with the thread that delivers
/// packets.
pub(crate) struct RemotePeer {
    /// Process of the peer; `LOCAL` if it is in this process, or if there is no peer.
    process: AtomicU32,
    /// Serial number of the next packet of a request, wrapping. A reset skips one. Never set back,
    /// so that late responses match no later request.
    serial: AtomicU32,
    response: Mutex<Option<StoredResponse>>,
    /// Set while the peer waits for the notification of a receive.
    notify_on_receive: AtomicBool,
}

struct StoredResponse {
    serial: u32,
    syndrome: Syndrome,
    payload: Vec<u8>,
}

impl Default for RemotePeer {
    fn default() -> Self {
        Self {
            process: AtomicU32::new(LOCAL),
            serial: AtomicU32::new(0),
            response: Mutex::default(),
            notify_on_receive: AtomicBool::new(false),
        }
    }
}

impl RemotePeer {
    /// Returns the process of the peer, if it is another one.
    pub(crate) fn process(&self) -> Option<u32> {
        Some(self.process.load(Ordering::SeqCst)).filter(|process| *process != LOCAL)
    }

    pub(crate) fn set_process(&self, process: Option<u32>) {
        self.process.store(process.unwrap_or(LOCAL), Ordering::SeqCst);
        self.notify_on_receive.store(false, Ordering::SeqCst);
        if process.is_none() {
            // A packet of a request that has not been sent yet is dropped.
            self.serial.fetch_add(1, Ordering::SeqCst);
        }
        self.response.lock().take();
    }

    /// Returns `true` if a packet is the last that was sent since the last reset.
    pub(crate) fn is_last(&self, serial: u32) -> bool {
        self.serial.load(Ordering::SeqCst) == serial.wrapping_add(1)
    }

    /// Stores a response that has arrived, if it may be to the outstanding request. A payload
    /// longer than `longest` fits no request, and is cut to one byte more than that.
    pub(crate) fn store_response(&self, response: &Response<'_>, longest: u32) {
        let &Response { serial, syndrome, payload, .. } = response;
        if !self.is_last(serial) {
            return;
        }
        let payload = payload.get(..=longest as usize).unwrap_or(payload);
        let kept = StoredResponse { serial, syndrome, payload: payload.to_vec() };
        *self.response.lock() = Some(kept);
    }
}

impl QueuePairCore {
    /// Sends a request to the peer in `process`, or takes the response to it. Returns its length
    /// once it was carried out.
    #[cold]
    pub(super) fn attempt_remote(
        &self,
        process: u32,
        requester: &mut Requester,
        request: &SendWorkRequest<'_>,
        local: LocalBuffer<'_>,
        deferred: &mut Deferred,
    ) -> Result<u64, AttemptError> {
        let Some(port) = &self.context.device.port else {
            return Err(AttemptError::NoResponse);
        };
        // Before the response is taken, which may be the last that the process has sent.
        let is_lost = port.is_known_lost(process);
        let response = self.remote_peer.response.lock().take();
        let response = response.filter(|response| requester.outstanding == Some(response.serial));
        if let Some(response) = response {
            requester.outstanding = None;
            requester.response_retry = Retry::default();
            return finish(&response, request, local);
        }
        if is_lost {
            return Err(AttemptError::Refused(CompletionStatus::RetryExceeded));
        }
        let now_ns = self.context.timers.now_ns();
        if requester.outstanding.is_none() || requester.response_retry.is_expired(now_ns) {
            requester.outstanding =
                Some(self.send_request(process, requester, request, local, deferred));
        }
        Err(AttemptError::NoResponse)
    }

    fn send_request(
        &self,
        process: u32,
        requester: &Requester,
        request: &SendWorkRequest<'_>,
        local: LocalBuffer<'_>,
        deferred: &mut Deferred,
    ) -> u32 {
        let serial = self.remote_peer.serial.fetch_add(1, Ordering::SeqCst);
        let mut gathered = Vec::new();
        let payload = match local {
            LocalBuffer::Inline(bytes) => bytes,
            _ if request.operation.returns_data() => &[],
            _ => {
                local.gather_into(&mut gathered);
                &gathered
            }
        };
        let packet = Request {
            to: requester.remote,
            from: self.number,
            psn: requester.next_psn,
            serial,
            solicited: request.flags.contains(SendFlags::SOLICITED),
            operation: request.operation,
            length: local.len(),
            payload,
        };
        self.send_packet(process, Some(serial), Packet::Request(packet), deferred);
        serial
    }

    /// Defers the send of a packet.
    fn send_packet(
        &self,
        process: u32,
        serial: Option<u32>,
        packet: Packet<'_>,
        deferred: &mut Deferred,
    ) {
        if let Some(this) = self.this.upgrade() {
            deferred.send(OutgoingPacket::new(this, process, serial, packet));
        }
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
            let to = crate::QueuePairNumber(self.responder.remote.load(Ordering::Relaxed));
            let ready = Packet::ReceiverReady { to, from: self.number };
            self.send_packet(process, None, ready, deferred);
        }
        self.resume(deferred);
    }
}

/// Completes a request with its response.
fn finish(
    response: &StoredResponse,
    request: &SendWorkRequest<'_>,
    local: LocalBuffer<'_>,
) -> Result<u64, AttemptError> {
    let original = match response.syndrome {
        Syndrome::Ack { original } => original,
        Syndrome::RnrNak { wait_ns } => return Err(AttemptError::ReceiverNotReady { wait_ns }),
        Syndrome::Nak(status) => return Err(AttemptError::Refused(status)),
    };
    if let LocalBuffer::Target(pieces) = local {
        if request.operation.is_atomic() {
            pieces.fill_bytes(&original.to_ne_bytes());
        } else if response.payload.len() as u64 == local.len() {
            pieces.fill_bytes(&response.payload);
        } else {
            return Err(AttemptError::Refused(CompletionStatus::RemoteOperation));
        }
    }
    Ok(local.len())
}
