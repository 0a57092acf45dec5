//! Ports: a device's end of its wire.
//!
//! Any thread sends. One thread at a time polls the wire (`polled`), and delivers each packet under
//! a gate, like the requests that run under the gates of queue pairs: [`Port::wait_for_holder`] is
//! part of the wait for all holders, after which memory can be deregistered. The fields of a
//! responder with a remote peer belong to the holder of this gate. The wire is called outside of
//! the gate.

use std::{cell::RefCell, collections::VecDeque, sync::Arc};

use super::{MAX_HEADER, Packet, Request, Response, Syndrome, Wire};
use talpf_primitives::{AtomicBool, Mutex, Ordering};

use crate::{
    Error, QueuePairNumber, Result,
    attributes::within,
    callback,
    deferred::Deferred,
    device::DeviceCore,
    gate::Gate,
    link::{AttemptError, Message},
    queue_pair::{LocalBuffer, QueuePairCore},
};

/// Most bytes that may be queued for a process, beside the outstanding ones of queue pairs.
const UNSENT_LIMIT: u64 = 64 << 20;
/// Most bytes of datagrams that have not been taken, with `DATAGRAM_OVERHEAD` for each.
const DATAGRAMS_LIMIT: u64 = 256 << 20;
const DATAGRAM_OVERHEAD: u64 = 64;

pub(crate) struct Port {
    wire: Arc<dyn Wire>,
    gate: Gate<()>,
    /// Set while a thread polls the wire.
    polled: AtomicBool,
    /// Processes that are known to be lost, set once all their packets have been delivered.
    lost: Box<[AtomicBool]>,
    datagrams: Mutex<Datagrams>,
    /// The first error of a packet that was not sent, for the next thread that makes progress.
    refused: Mutex<Option<Error>>,
}

#[derive(Default)]
struct Datagrams {
    queue: VecDeque<(u32, Vec<u8>)>,
    bytes: u64,
}

impl Datagrams {
    fn push(&mut self, from: u32, bytes: &[u8]) {
        self.bytes += bytes.len() as u64 + DATAGRAM_OVERHEAD;
        self.queue.push_back((from, bytes.to_vec()));
    }

    fn pop(&mut self) -> Option<(u32, Vec<u8>)> {
        let (from, bytes) = self.queue.pop_front()?;
        self.bytes -= bytes.len() as u64 + DATAGRAM_OVERHEAD;
        Some((from, bytes))
    }
}

/// Outcome of one poll of the wire.
#[derive(Default)]
struct PollOutcome {
    delivered: usize,
    /// Queue pairs with a response, or with another reason for a new attempt.
    resumed: Vec<Arc<QueuePairCore>>,
    malformed: Option<u32>,
}

impl PollOutcome {
    /// Adds a queue pair to resume, once for consecutive packets.
    fn resume(&mut self, queue_pair: Arc<QueuePairCore>) {
        if self.resumed.last().is_none_or(|last| !Arc::ptr_eq(last, &queue_pair)) {
            self.resumed.push(queue_pair);
        }
    }
}

/// Exclusive right of a thread to poll the wire.
struct PollGuard<'a>(&'a AtomicBool);

impl<'a> PollGuard<'a> {
    /// Takes the right, or returns `None` while another thread has it, or a caller on this one.
    fn take(polled: &'a AtomicBool) -> Option<Self> {
        (!polled.swap(true, Ordering::Acquire)).then(|| Self(polled))
    }
}

impl Drop for PollGuard<'_> {
    fn drop(&mut self) {
        // A read-modify-write, so that all changes form one order.
        self.0.swap(false, Ordering::Release);
    }
}

impl Port {
    pub(crate) fn new(wire: Arc<dyn Wire>) -> Self {
        let lost = (0..wire.processes()).map(|_| AtomicBool::new(false)).collect();
        let (datagrams, refused) = (Mutex::default(), Mutex::default());
        let polled = AtomicBool::new(false);
        Self { wire, gate: Gate::new(()), polled, lost, datagrams, refused }
    }

    /// Returns the number of this process.
    pub(crate) fn process(&self) -> u32 {
        self.wire.process()
    }

    pub(crate) fn processes(&self) -> u32 {
        self.wire.processes()
    }

    pub(crate) fn is_lost(&self, process: u32) -> bool {
        self.wire.is_lost(process)
    }

    /// Returns `true` if a process is known to be lost and all its packets have been delivered.
    pub(crate) fn is_known_lost(&self, process: u32) -> bool {
        self.lost.get(process as usize).is_some_and(|lost| lost.load(Ordering::Acquire))
    }

    pub(crate) fn has_unsent(&self) -> bool {
        self.wire.has_unsent()
    }

    /// Sends a packet, unless too many bytes are queued for the process. The caller holds no gate
    /// and no lock.
    ///
    /// **Errors**: too many bytes are queued, or the wire has panicked. [`Port::progress`] returns
    /// the same error.
    pub(crate) fn send(&self, device: &DeviceCore, process: u32, packet: Vec<u8>) -> Result<()> {
        self.check_unsent(device, process, packet.len() as u64)?;
        let sent = callback::call("the send of a wire", || self.wire.send(process, packet));
        sent.ok_or(Error::WirePanicked { call: "send" }).inspect_err(|error| self.refuse(error))
    }

    /// Returns an error if too many bytes would be queued for the process, with `more` new ones.
    fn check_unsent(&self, device: &DeviceCore, process: u32, more: u64) -> Result<()> {
        let bytes = self.wire.unsent_bytes(process) as u64 + more;
        if bytes <= UNSENT_LIMIT {
            return Ok(());
        }
        let limit = UNSENT_LIMIT + device.max_outstanding_to(process);
        if bytes <= limit {
            return Ok(());
        }
        Err(Error::Unsent { process, bytes, limit }).inspect_err(|error| self.refuse(error))
    }

    /// Stores an error for the next thread that makes progress, unless there is one already.
    #[cold]
    fn refuse(&self, error: &Error) {
        self.refused.lock().get_or_insert_with(|| error.clone());
    }

    pub(crate) fn receive_datagram(&self) -> Option<(u32, Vec<u8>)> {
        self.datagrams.lock().pop()
    }

    pub(crate) fn wait_for_holder(&self) {
        self.gate.wait_for_holder();
    }

    /// Delivers packets that have arrived, and returns their number; 0 while another thread does.
    ///
    /// **Errors**: a malformed packet, and the others are delivered; too many bytes are queued for
    /// a process; too many datagrams have not been taken.
    pub(crate) fn progress(&self, device: &DeviceCore) -> Result<usize> {
        if let Some(refused) = self.refused.lock().take() {
            return Err(refused);
        }
        within("datagrams not received", self.datagrams.lock().bytes, DATAGRAMS_LIMIT)?;
        let Some(guard) = PollGuard::take(&self.polled) else { return Ok(0) };
        let mut deferred = Deferred::default();
        let mut outcome = PollOutcome::default();
        let mut sink = |from, bytes: &[u8]| {
            outcome.delivered += 1;
            match Packet::from_bytes(bytes) {
                Ok(packet) => self.deliver(device, from, packet, &mut outcome, &mut deferred),
                Err(_) => outcome.malformed = Some(from),
            }
        };
        let polled = callback::call("the poll of a wire", || self.wire.poll(&mut sink));
        for (process, known) in self.lost.iter().enumerate() {
            let process = process as u32;
            if !known.load(Ordering::Relaxed) && self.wire.is_lost(process) {
                known.store(true, Ordering::Release);
                let of_process =
                    |qp: &Arc<QueuePairCore>| qp.remote_peer.process() == Some(process);
                outcome.resumed.extend(device.all().into_iter().filter(of_process));
            }
        }
        drop(guard);
        for queue_pair in outcome.resumed {
            queue_pair.resume(&mut deferred);
        }
        deferred.run();
        match outcome.malformed {
            Some(process) => Err(Error::MalformedPacket { process }),
            None => polled.map(|()| outcome.delivered).ok_or(Error::WirePanicked { call: "poll" }),
        }
    }

    fn deliver(
        &self,
        device: &DeviceCore,
        from: u32,
        packet: Packet<'_>,
        outcome: &mut PollOutcome,
        deferred: &mut Deferred,
    ) {
        let connected = |to: QueuePairNumber, peer: QueuePairNumber| {
            device.find(to).filter(|queue_pair| is_connected(queue_pair, from, peer))
        };
        match packet {
            Packet::Datagram(bytes) => self.datagrams.lock().push(from, bytes),
            Packet::Request(request) => {
                if let Some(queue_pair) = connected(request.to, request.from) {
                    self.respond(&queue_pair, from, &request, deferred);
                }
            }
            Packet::Response(response) => {
                if let Some(queue_pair) = connected(response.to, response.from) {
                    queue_pair
                        .remote_peer
                        .store_response(&response, device.attributes.max_message_size);
                    outcome.resume(queue_pair);
                }
            }
            Packet::ReceiverReady { to, from: peer } => {
                connected(to, peer).into_iter().for_each(|queue_pair| outcome.resume(queue_pair));
            }
        }
    }

    /// Passes a request to its queue pair and sends the response.
    fn respond(
        &self,
        queue_pair: &QueuePairCore,
        process: u32,
        request: &Request<'_>,
        deferred: &mut Deferred,
    ) {
        let device = &queue_pair.context.device;
        // A peer that requests more data than it receives gets no response.
        let returned = if request.operation.returns_data() { request.length } else { 0 };
        if request.length > u64::from(device.attributes.max_message_size)
            || self.check_unsent(device, process, returned + MAX_HEADER).is_err()
        {
            return;
        }
        let Some((syndrome, response)) = self.carry_out(queue_pair, process, request, deferred)
        else {
            return;
        };
        // Checked above.
        let _ = self.send(device, process, response);
        if matches!(syndrome, Syndrome::RnrNak { .. }) {
            queue_pair.notify_when_ready(deferred);
        }
    }

    /// Carries a request out under the gate. Returns its result and the packet of the response.
    fn carry_out(
        &self,
        queue_pair: &QueuePairCore,
        process: u32,
        request: &Request<'_>,
        deferred: &mut Deferred,
    ) -> Option<(Syndrome, Vec<u8>)> {
        // No other thread enters this gate, so this does not wait.
        let mut guard = self.gate.enter_blocking();
        if !is_connected(queue_pair, process, request.from) {
            return None;
        }
        let (_, held) = guard.parts();
        let returned = RefCell::default();
        let local = if request.operation.returns_data() {
            LocalBuffer::Brought { length: request.length, into: &returned }
        } else {
            LocalBuffer::Inline(request.payload)
        };
        let message = Message {
            source: request.from,
            psn: request.psn,
            operation: &request.operation,
            solicited: request.solicited,
            local: &local,
        };
        let syndrome = match queue_pair.respond(&message, held, deferred) {
            Ok(original) => Syndrome::Ack { original },
            Err(AttemptError::Refused(status)) => Syndrome::Nak(status),
            Err(AttemptError::ReceiverNotReady { wait_ns }) => Syndrome::RnrNak { wait_ns },
            Err(AttemptError::NoResponse | AttemptError::Delayed { .. }) => return None,
        };
        drop(guard);
        let payload = returned.into_inner();
        let Request { to, from, serial, .. } = *request;
        let response = Response { to: from, from: to, serial, syndrome, payload: &payload };
        Some((syndrome, Packet::Response(response).to_bytes()))
    }
}

/// Returns `true` if a queue pair is connected to queue pair `peer` of `process`.
fn is_connected(queue_pair: &QueuePairCore, process: u32, peer: QueuePairNumber) -> bool {
    let remote = queue_pair.responder.remote.load(Ordering::Relaxed);
    queue_pair.remote_peer.process() == Some(process) && remote == peer.0
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
