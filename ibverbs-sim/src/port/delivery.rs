//! Delivery of packets that have arrived: requests to the responder, responses to the requester.

use std::{cell::RefCell, sync::Arc};

use super::{
    KEPT_BYTES, Port, Request, Response,
    datagrams::Datagrams,
    packet::{MAX_HEAD, Packet, Syndrome},
};
use crate::{
    QueuePairNumber,
    deferred::Deferred,
    device::DeviceCore,
    link::{AttemptError, Message},
    queue_pair::{LocalBuffer, QueuePairCore},
};

/// Delivery of packets from a process, during a poll.
pub(super) struct Delivery<'a> {
    pub(super) port: &'a Port,
    pub(super) from: u32,
    pub(super) acknowledged: &'a mut Vec<Arc<QueuePairCore>>,
    pub(super) returned: &'a RefCell<Vec<u8>>,
    pub(super) deferred: &'a mut Deferred,
    pub(super) datagrams: &'a mut Datagrams,
}

impl Delivery<'_> {
    /// Carries out a packet, or passes it on.
    pub(super) fn deliver(&mut self, device: &DeviceCore, packet: Packet<'_>) {
        let from = self.from;
        let connected = |to: QueuePairNumber, peer: QueuePairNumber| {
            device.find(to).filter(|queue_pair| queue_pair.is_connected_to(from, peer))
        };
        match packet {
            Packet::Datagram(bytes) => self.datagrams.push(from, bytes),
            Packet::Request(request) => {
                if let Some(queue_pair) = connected(request.to, request.from) {
                    self.respond(queue_pair, &request);
                }
            }
            Packet::Response(response) => {
                if let Some(queue_pair) = connected(response.to, response.from) {
                    queue_pair.take_response(&response, self.deferred);
                }
            }
            Packet::ReceiverReady { to, from: peer } => {
                if let Some(queue_pair) = connected(to, peer) {
                    queue_pair.receiver_ready(self.deferred);
                }
            }
            Packet::Region { key, region } => self.port.regions[from as usize].insert(key, region),
            Packet::RegionClosed { key } => self.port.regions[from as usize].remove(key),
            Packet::Permit { to, from: peer, connection, permit } => {
                if let Some(queue_pair) = connected(to, peer) {
                    queue_pair.take_permit(connection, permit, self.deferred);
                }
            }
        }
    }

    /// Passes a request to its queue pair, and queues the response or notes it for later.
    fn respond(&mut self, queue_pair: Arc<QueuePairCore>, request: &Request<'_>) {
        let device = &queue_pair.context.device;
        // A peer that requests more data than it receives gets no response.
        let returned = if request.operation.returns_data() { request.length } else { 0 };
        let expected = returned + MAX_HEAD as u64;
        if request.length > u64::from(device.attributes.max_message_size)
            || self.port.check_unsent(device, self.from, expected).is_err()
        {
            return;
        }
        let Some(outcome) = self.carry_out(&queue_pair, request) else { return };
        let syndrome = match outcome {
            Outcome::Done => {
                if queue_pair.remote_peer.acknowledge_later(request.connection) {
                    self.acknowledged.push(queue_pair);
                }
                return;
            }
            Outcome::Response(syndrome) => {
                queue_pair.note_response();
                syndrome
            }
            Outcome::Repeated { original } => Syndrome::Ack { original },
        };
        let &Request { to, from, connection, psn, .. } = request;
        let payload = self.returned.borrow();
        let response =
            Response { to: from, from: to, connection, psn, syndrome, payload: &payload };
        self.port.queue(self.from, &Packet::Response(response), None);
        if matches!(syndrome, Syndrome::RnrNak { .. }) {
            queue_pair.notify_when_ready(self.deferred);
        }
    }

    /// Carries a request out under the gate. Returns its outcome, with data in `returned`.
    fn carry_out(&mut self, queue_pair: &QueuePairCore, request: &Request<'_>) -> Option<Outcome> {
        {
            let mut returned = self.returned.borrow_mut();
            returned.clear();
            returned.shrink_to(KEPT_BYTES);
        }
        // No other thread enters this gate, so this does not wait.
        let mut guard = self.port.gate.enter_blocking();
        if !queue_pair.is_connected_to(self.from, request.from) {
            return None;
        }
        let returns_data = request.operation.returns_data();
        let is_duplicate = queue_pair.is_duplicate(request.psn);
        let (_, held) = guard.parts();
        let local = if returns_data {
            LocalBuffer::Brought { length: request.length, into: self.returned }
        } else if request.is_delivered {
            LocalBuffer::Delivered { length: request.length }
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
        match queue_pair.respond(&message, held, self.deferred) {
            Ok(original) if is_duplicate => Some(Outcome::Repeated { original }),
            Ok(original) if returns_data => Some(Outcome::Response(Syndrome::Ack { original })),
            Ok(_) => Some(Outcome::Done),
            Err(AttemptError::Refused(status)) => Some(Outcome::Response(Syndrome::Nak(status))),
            Err(AttemptError::ReceiverNotReady { wait_ns }) => {
                Some(Outcome::Response(Syndrome::RnrNak { wait_ns }))
            }
            Err(_) => None,
        }
    }
}

/// Outcome of a request of a peer.
enum Outcome {
    /// The request was carried out, and is acknowledged with those after it.
    Done,
    /// The request was carried out before. The response says so of no later request, whose own may be lost.
    Repeated { original: u64 },
    /// The request has a response of its own.
    Response(Syndrome),
}
