//! What a queue pair whose peer is in another process adds: requests become packets, and wait for
//! their answers as others wait for a receive.
//!
//! The holder of the gate makes the packet of a request and stalls; the packet leaves once the gate
//! is free. Whoever delivers the answer leaves it in `answer` and resumes the queue pair; the
//! request is then attempted again and finds it. A resume without an answer changes nothing.
//!
//! Two sendings of one request may overtake each other, between the gate and the wire: the answer
//! to the last one counts, and the peer takes the other for a repetition, as its sequence number
//! says.
//!
//! The other end keeps no request for which it has no receive. It says so, lists itself for the
//! next receive and looks once more, in this order: so what it says about the receive comes after
//! what it says about the lack of it.

use talpf_primitives::{AtomicBool, AtomicU32, Mutex, Ordering};

use crate::{
    CompletionStatus, SendFlags, SendWorkRequest,
    deferred::Deferred,
    link::AttemptError,
    queue_pair::{LocalBuffer, QueuePairCore, requester::Requester, retry::Retry},
    wire::{OutgoingPacket, Packet, Request, Response, Syndrome},
};

/// The number of no process.
const LOCAL: u32 = u32::MAX;

/// What is shared with the thread that delivers.
pub(crate) struct RemotePeer {
    /// Where the peer is; `HERE` if it is in this process, or if there is none.
    process: AtomicU32,
    /// The number of the next request, wrapping. A reset skips one. Never set back, so that late
    /// answers match no later request.
    serial: AtomicU32,
    response: Mutex<Option<StoredResponse>>,
    /// The peer waits to be told of a receive.
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
    /// The process of the peer, if it is another one.
    pub(crate) fn process(&self) -> Option<u32> {
        Some(self.process.load(Ordering::SeqCst)).filter(|process| *process != LOCAL)
    }

    pub(crate) fn set_process(&self, process: Option<u32>) {
        self.process.store(process.unwrap_or(LOCAL), Ordering::SeqCst);
        self.notify_on_receive.store(false, Ordering::SeqCst);
        if process.is_none() {
            // A request that has not left yet stays.
            self.serial.fetch_add(1, Ordering::SeqCst);
        }
        self.response.lock().take();
    }

    /// Returns whether a request is the last that was sent since the last reset.
    pub(crate) fn is_last(&self, serial: u32) -> bool {
        self.serial.load(Ordering::SeqCst) == serial.wrapping_add(1)
    }

    /// Keeps an answer that has arrived, if it is to the request that may be under way. Of a payload
    /// over `longest`, which fits no request, no more is kept than shows that.
    pub(crate) fn keep_response(&self, response: &Response<'_>, longest: u32) {
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
    /// Sends a request to the peer in `process`, or takes its answer. Gives its length once it was
    /// carried out.
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
        // Before the look at the answer, which may be the last that the process has sent.
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

    /// Has a packet leave once no gate is held.
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

    /// The peer was told that there is no receive: it is told of the next one.
    #[cold]
    pub(crate) fn notify_when_ready(&self, deferred: &mut Deferred) {
        self.remote_peer.notify_on_receive.store(true, Ordering::SeqCst);
        self.receives.wait(&self.this);
        if !self.receives.is_empty() {
            self.receive_posted(deferred);
        }
    }

    /// A receive was posted for which this end is listed: it waits for it to send, or its peer
    /// elsewhere does.
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

/// Does at this end what an answer brings.
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
