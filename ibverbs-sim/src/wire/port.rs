//! A device's end of its wire.
//!
//! Any thread sends. One thread at a time delivers, under a gate, like the requests that run under
//! the gates of queue pairs: [`Port::wait_for_holder`] is part of the wait for all holders that
//! makes memory safe to take away. The fields of a responder whose peer is elsewhere belong to
//! whoever holds this gate.

use std::{cell::RefCell, collections::VecDeque, sync::Arc};

use super::{Answer, Packet, Request, Verdict, Wire};
use crate::{
    Error, QueuePairNumber, Result,
    aftermath::Aftermath,
    device::DeviceCore,
    gate::{Gate, Held, Room},
    link::{Message, Setback},
    queue_pair::{Local, QueuePairCore},
    sync::{Mutex, Ordering},
};

pub(crate) struct Port {
    wire: Arc<dyn Wire>,
    gate: Gate<Delivery>,
    datagrams: Mutex<VecDeque<(u32, Vec<u8>)>>,
}

/// What belongs to the thread that delivers.
struct Delivery {
    /// Processes that are known to be lost.
    lost: Vec<bool>,
}

/// What a delivery leaves to do.
#[derive(Default)]
struct News {
    delivered: usize,
    /// Queue pairs that have an answer, or a reason to try again.
    resumed: Vec<Arc<QueuePairCore>>,
    malformed: Option<u32>,
}

impl Port {
    pub(crate) fn new(wire: Arc<dyn Wire>) -> Self {
        let delivery = Delivery { lost: vec![false; wire.processes() as usize] };
        Self { wire, gate: Gate::new(delivery), datagrams: Mutex::default() }
    }

    /// The number of this process.
    pub(crate) fn process(&self) -> u32 {
        self.wire.process()
    }

    pub(crate) fn processes(&self) -> u32 {
        self.wire.processes()
    }

    pub(crate) fn is_lost(&self, process: u32) -> bool {
        self.wire.is_lost(process)
    }

    pub(crate) fn has_unsent(&self) -> bool {
        self.wire.has_unsent()
    }

    pub(crate) fn send(&self, process: u32, packet: Packet<'_>) {
        self.wire.send(process, packet.to_bytes());
    }

    pub(crate) fn receive_datagram(&self) -> Option<(u32, Vec<u8>)> {
        self.datagrams.lock().pop_front()
    }

    pub(crate) fn wait_for_holder(&self) {
        self.gate.wait_for_holder();
    }

    /// Delivers what has arrived and says how many packets that was; none if another thread is at
    /// it.
    ///
    /// **Errors**: a packet that is none. The others are delivered.
    pub(crate) fn progress(&self, device: &DeviceCore) -> Result<usize> {
        let Some((mut hold, _)) = self.gate.enter(0, Room { freed: 0, limit: 1, whole: false })
        else {
            return Ok(0);
        };
        let mut aftermath = Aftermath::default();
        let mut news = News::default();
        let (delivery, held) = hold.parts();
        self.wire.poll(&mut |from, bytes| {
            news.delivered += 1;
            match Packet::from_bytes(bytes) {
                Ok(packet) => self.deliver(device, from, packet, held, &mut news, &mut aftermath),
                Err(_) => news.malformed = Some(from),
            }
        });
        for (process, known) in delivery.lost.iter_mut().enumerate() {
            let process = process as u32;
            if !*known && self.wire.is_lost(process) {
                *known = true;
                let of_process = |qp: &Arc<QueuePairCore>| qp.elsewhere.process() == Some(process);
                news.resumed.extend(device.all().into_iter().filter(of_process));
            }
        }
        drop(hold);
        for queue_pair in news.resumed {
            queue_pair.resume(&mut aftermath);
        }
        aftermath.settle();
        match news.malformed {
            Some(process) => Err(Error::MalformedPacket { process }),
            None => Ok(news.delivered),
        }
    }

    fn deliver(
        &self,
        device: &DeviceCore,
        from: u32,
        packet: Packet<'_>,
        held: Held<'_>,
        news: &mut News,
        aftermath: &mut Aftermath,
    ) {
        let connected = |to: QueuePairNumber, peer: QueuePairNumber| {
            let queue_pair = device.find(to)?;
            let remote = queue_pair.responder.remote.load(Ordering::Relaxed);
            let right = queue_pair.elsewhere.process() == Some(from) && remote == peer.0;
            right.then_some(queue_pair)
        };
        match packet {
            Packet::Datagram(bytes) => self.datagrams.lock().push_back((from, bytes.to_vec())),
            Packet::Request(request) => {
                if let Some(queue_pair) = connected(request.to, request.from) {
                    self.answer(&queue_pair, from, &request, held, aftermath);
                }
            }
            Packet::Answer(answer) => {
                if let Some(queue_pair) = connected(answer.to, answer.from) {
                    queue_pair.elsewhere.keep_answer(&answer);
                    news.resumed.push(queue_pair);
                }
            }
            Packet::Ready { to, from: peer } => news.resumed.extend(connected(to, peer)),
        }
    }

    /// Has a request answered by the queue pair that it is for.
    fn answer(
        &self,
        queue_pair: &QueuePairCore,
        process: u32,
        request: &Request<'_>,
        held: Held<'_>,
        aftermath: &mut Aftermath,
    ) {
        if request.length > u64::from(queue_pair.context.device.attributes.max_message_size) {
            return;
        }
        let brought = RefCell::default();
        let local = if request.operation.brings_back() {
            Local::Brought { length: request.length, into: &brought }
        } else {
            Local::Inline(request.payload)
        };
        let message = Message {
            source: request.from,
            psn: request.psn,
            operation: &request.operation,
            solicited: request.solicited,
            local: &local,
        };
        let verdict = match queue_pair.respond(&message, held, aftermath) {
            Ok(original) => Verdict::Done { original },
            Err(Setback::Refused(status)) => Verdict::Refused(status),
            Err(Setback::ReceiverNotReady { wait_ns }) => Verdict::NotReady { wait_ns },
            Err(Setback::NoAnswer | Setback::Held { .. }) => return,
        };
        let payload = brought.into_inner();
        let Request { to, from, serial, .. } = *request;
        let answer = Answer { to: from, from: to, serial, verdict, payload: &payload };
        self.send(process, Packet::Answer(answer));
        if matches!(verdict, Verdict::NotReady { .. }) {
            queue_pair.promise_ready(aftermath);
        }
    }
}
