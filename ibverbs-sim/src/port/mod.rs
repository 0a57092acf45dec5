//! Ports: a device's end of its rail.
//!
//! A device made with [`Device::with_rail`](crate::Device::with_rail) is one of several that a
//! [`Rail`] joins, one in each process. Queue pairs of one process work as without a rail; a queue
//! pair that is connected to another process sends its requests there as packets:
//!
//! ```text
//! requester                                 responder
//!     request(key, address, payload) ──►    checks the claims, carries it out
//!     further requests ──►                  ... in order
//!     ◄── response: ACK of all so far       after a batch of requests
//!     ◄── response: data, or NAK
//!     ◄── response: RNR NAK                 no receive is posted; later requests are dropped
//!     ◄── receiver ready                    one is posted now: the requests are sent again
//! ```
//!
//! - `packet`: the packets, and their conversion to bytes and back.
//! - `outgoing`: packets that wait for the rail; they are queued under gates and sent under none.
//! - `mapped`: data that needs no packet, because the rail maps memory.
//! - `long_request`: data that the rail writes or reads, before the packet of its request.
//! - `incoming`: packets from the messages of the rail.
//! - `delivery`: the effect of each packet that has arrived.
//! - `datagrams`: the datagrams of a poll.
//! - `sleeper`: the call about what finds no room while somebody sleeps.
//! - The requesting end is `queue_pair::remote`; the responding end is the same responder that
//!   serves peers of this process, so the rules are the same.
//!
//! Any thread sends. One thread at a time polls the rail (`polled`), and delivers each packet under
//! a gate, like the requests that run under the gates of queue pairs: [`Port::wait_for_holder`] is
//! part of the wait for all holders, after which memory can be deregistered. The fields of a
//! responder with a remote peer belong to the holder of this gate. The rail is called outside of
//! the gate.
//!
//! The bytes that are queued for a process are bounded by 64 MiB and the bytes that the queue pairs
//! connected to it may have under way. Beyond that nothing more is sent, and
//! [`Device::progress`](crate::Device::progress) returns an error. The thread that polls passes the
//! datagrams of a poll on, once its requests were carried out and acknowledged: what is sent for a
//! datagram comes after that.
//!
//! Everything that arrives is a claim. A malformed packet is an error of
//! [`Device::progress`](crate::Device::progress) and has no other effect; a process whose messages
//! cannot be cut into packets is lost. A packet to a queue pair that is not connected to the sender
//! gets no response.

mod datagrams;
mod delivery;
mod incoming;
mod long_request;
mod mapped;
mod outgoing;
mod packet;
mod sleeper;

use std::{cell::RefCell, sync::Arc};

use talpf_primitives::{AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering, TryLock};

pub(crate) use self::long_request::LongRequest;
use self::mapped::{MappedRegions, OwnRegions, long_ended};
pub(crate) use self::packet::{
    MAX_HEAD, MappedRegion, Packet, Permit, Request, Response, Syndrome,
};
use self::{
    datagrams::Datagrams, delivery::Delivery, incoming::Incoming, outgoing::Outgoing,
    packet::Malformed, sleeper::Sleeper,
};
use crate::control_plane;
use crate::{
    Armed, Error, LossReason, Rail, RailEvent, RailLimits, Result, callback,
    deferred::Deferred,
    device::DeviceCore,
    gate::Gate,
    queue_pair::{LocalBuffer, QueuePairCore},
};

/// Bytes of the length before a packet.
const LENGTH_BYTES: usize = size_of::<u32>();
/// Most bytes that may be queued for a process, beside the outstanding ones of queue pairs.
const UNSENT_LIMIT: u64 = 64 << 20;
/// Memory for the data of a READ that is kept after its response.
const KEPT_BYTES: usize = 1 << 20;

pub(crate) struct Port {
    rail: Arc<dyn Rail>,
    limits: RailLimits,
    /// `true` for each process whose memory can be mapped.
    is_mapped: Box<[bool]>,
    gate: Gate<()>,
    outgoing: Outgoing,
    /// State of the thread that polls the rail.
    polled: TryLock<Polled>,
    /// Processes that are known to be lost, set once all their packets have been delivered.
    lost: Box<[AtomicBool]>,
    /// Number of these.
    losses: AtomicU32,
    /// Processes that are lost because they showed no life.
    silent: Box<[AtomicBool]>,
    /// Packets ever received from each process.
    received: Box<[AtomicU64]>,
    /// Regions of each process that can be used at once.
    regions: Box<[MappedRegions]>,
    /// Keys by the rail of the regions of this process.
    own: OwnRegions,
    /// The first error of a packet that was not sent, for the next thread that makes progress.
    refused: Mutex<Option<Error>>,
    /// Set while there may be such an error.
    has_refused: AtomicBool,
    sleeper: Sleeper,
}

/// State of the thread that polls.
struct Polled {
    incoming: Box<[Incoming]>,
    /// Queue pairs whose peers wait for the acknowledgement of requests, each once.
    acknowledged: Vec<Arc<QueuePairCore>>,
    /// Data of the READ that is carried out.
    returned: RefCell<Vec<u8>>,
    datagrams: Datagrams,
    deferred: Deferred,
    error: Option<Error>,
}

impl Port {
    pub(crate) fn new(rail: Arc<dyn Rail>) -> Self {
        let processes = rail.processes();
        let polled = Polled {
            incoming: (0..processes).map(|_| Incoming::default()).collect(),
            acknowledged: Vec::new(),
            returned: RefCell::default(),
            datagrams: Datagrams::default(),
            deferred: Deferred::default(),
            error: None,
        };
        let is_mapped = |process| rail.limits().is_mapped && rail.is_mapped_to(process);
        Self {
            limits: rail.limits(),
            is_mapped: (0..processes).map(is_mapped).collect(),
            gate: Gate::new(()),
            outgoing: Outgoing::new(&*rail),
            polled: TryLock::new(polled),
            lost: (0..processes).map(|_| AtomicBool::new(false)).collect(),
            losses: AtomicU32::new(0),
            silent: (0..processes).map(|_| AtomicBool::new(false)).collect(),
            received: (0..processes).map(|_| AtomicU64::new(0)).collect(),
            regions: (0..processes).map(|_| MappedRegions::default()).collect(),
            own: OwnRegions::default(),
            refused: Mutex::default(),
            has_refused: AtomicBool::new(false),
            sleeper: Sleeper::default(),
            rail,
        }
    }

    /// Returns the number of this process.
    pub(crate) fn process(&self) -> u32 {
        self.rail.process()
    }

    pub(crate) fn processes(&self) -> u32 {
        self.rail.processes()
    }

    /// Returns `true` if a process is known to be lost and all its packets have been delivered.
    pub(crate) fn is_lost(&self, process: u32) -> bool {
        self.lost.get(process as usize).is_some_and(|lost| lost.load(Ordering::Acquire))
    }

    /// Returns the number of lost processes.
    #[inline]
    pub(crate) fn losses(&self) -> u32 {
        self.losses.load(Ordering::Acquire)
    }

    /// Returns `true` if a process is lost because it showed no life.
    pub(crate) fn is_silent(&self, process: u32) -> bool {
        self.silent.get(process as usize).is_some_and(|silent| silent.load(Ordering::Acquire))
    }

    /// Returns `true` if data is copied to and from the memory of a process at once, as far as that lies in
    /// memory of the rail.
    pub(crate) fn maps(&self, process: u32) -> bool {
        self.is_mapped.get(process as usize).is_some_and(|is_mapped| *is_mapped)
    }

    pub(crate) fn has_unsent(&self) -> bool {
        !self.outgoing.is_settled(|_| false) || self.rail.has_unsent()
    }

    /// Returns the number of packets ever sent to a process, and received from it.
    pub(crate) fn traffic(&self, process: u32) -> (u64, u64) {
        let received = self.received.get(process as usize);
        let received = received.map_or(0, |count| count.load(Ordering::Acquire));
        (self.outgoing.packets(process), received)
    }

    /// Queues a packet with the data of `more` behind its payload. The caller flushes it once it
    /// holds no gate.
    pub(crate) fn queue(&self, process: u32, packet: &Packet<'_>, more: Option<LocalBuffer<'_>>) {
        self.outgoing.push(process, packet, more);
    }

    /// Sends queued packets. The caller holds no gate and no lock.
    pub(crate) fn flush(&self) {
        self.sleeper.note_taken(self.outgoing.flush(&*self.rail));
    }

    pub(crate) fn call_if_unsent(&self, call: Box<dyn Fn() + Send + Sync>) {
        self.sleeper.call_if_unsent(call);
    }

    pub(crate) fn has_event(&self) -> bool {
        self.limits.has_event
    }

    /// Announces the sleep of the caller.
    pub(crate) fn arm(&self) -> Armed<'_> {
        self.sleeper.arm();
        let armed = self.rail.arm();
        // Afterwards: a packet may be queued that was refused when there was no room, and there is some by now.
        let is_announced = |process| self.rail.announces_room(process);
        if self.outgoing.is_settled(is_announced) { armed } else { Armed::Nothing }
    }

    /// Sends a datagram, unless too many bytes are queued for the process. The caller holds no gate
    /// and no lock.
    ///
    /// **Errors**: too many bytes are queued. [`Port::progress`] returns the same error.
    pub(crate) fn send_datagram(
        &self,
        device: &DeviceCore,
        process: u32,
        pieces: &[&[u8]],
    ) -> Result<()> {
        let bytes = pieces.iter().map(|piece| piece.len()).sum();
        callback::call("the hint to a rail", || self.rail.prepare_send(process, bytes));
        self.check_unsent(device, process, bytes as u64)?;
        self.sleeper.note_taken(self.outgoing.send_datagram(process, pieces, &*self.rail));
        Ok(())
    }

    /// Returns an error if too many bytes would be queued for the process, with `more` new ones.
    fn check_unsent(&self, device: &DeviceCore, process: u32, more: u64) -> Result<()> {
        let bytes = self.outgoing.bytes(process) + more;
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
        self.has_refused.store(true, Ordering::Release);
    }

    #[cold]
    fn take_refused(&self) -> Option<Error> {
        self.has_refused.store(false, Ordering::Relaxed);
        self.refused.lock().take()
    }

    pub(crate) fn wait_for_holder(&self) {
        self.gate.wait_for_holder();
    }

    /// Delivers packets that have arrived, and returns what the poll of the rail has; 0 while another
    /// thread does this.
    ///
    /// **Errors**: a malformed packet, and the others are delivered; too many bytes are queued for
    /// a process.
    pub(crate) fn progress(
        &self,
        device: &DeviceCore,
        on_datagram: &mut dyn FnMut(u32, &[u8]),
    ) -> Result<usize> {
        if self.has_refused.load(Ordering::Acquire)
            && let Some(refused) = self.take_refused()
        {
            return Err(refused);
        }
        let Some(mut guard) = self.polled.try_lock() else { return Ok(0) };
        let polled = &mut *guard;
        self.sleeper.disarm();
        let mut sink = |event: RailEvent<'_>| self.handle(device, event, polled);
        let outcome = callback::call("the poll of a rail", || self.rail.poll(&mut sink));
        for process in (0..self.processes()).filter(|process| self.outgoing.has_panicked(*process))
        {
            polled.error.get_or_insert(Error::WirePanicked { call: "send" });
            self.lose(device, process, &mut polled.deferred);
        }
        self.acknowledge(polled);
        if !polled.datagrams.is_empty() {
            self.flush();
            polled.datagrams.pass_on(on_datagram);
        }
        let (deferred, error) = (std::mem::take(&mut polled.deferred), polled.error.take());
        drop(guard);
        deferred.run();
        self.flush();
        match (error, outcome) {
            (Some(error), _) => Err(error),
            (None, None) => Err(Error::WirePanicked { call: "poll" }),
            (None, Some(events)) => Ok(events),
        }
    }

    fn handle(&self, device: &DeviceCore, event: RailEvent<'_>, polled: &mut Polled) {
        match event {
            RailEvent::Message { from, bytes } => self.receive(device, from, bytes, polled),
            RailEvent::Lost { process, reason } => {
                control_plane::loses(process, &reason);
                match reason {
                    LossReason::Malformed(_) => {
                        polled.error.get_or_insert(Error::MalformedPacket { process });
                    }
                    LossReason::WirePanicked => {
                        polled.error.get_or_insert(Error::WirePanicked { call: "send" });
                    }
                    LossReason::Silent => {
                        if let Some(silent) = self.silent.get(process as usize) {
                            silent.store(true, Ordering::Release);
                        }
                    }
                    LossReason::Ended => {}
                }
                self.lose(device, process, &mut polled.deferred);
            }
            RailEvent::Completed { context, status } => {
                long_ended(device, context, status, &mut polled.deferred);
            }
            // No queue pair asks for a notice.
            RailEvent::Notice { .. } => {}
        }
    }

    /// Gives a process up, from which nothing is delivered any more.
    fn lose(&self, device: &DeviceCore, process: u32, deferred: &mut Deferred) {
        let Some(lost) = self.lost.get(process as usize) else { return };
        if lost.swap(true, Ordering::AcqRel) {
            return;
        }
        self.losses.fetch_add(1, Ordering::Release);
        self.outgoing.lose(process);
        for queue_pair in device.all() {
            if queue_pair.remote_peer.process() == Some(process) {
                queue_pair.resume(deferred);
            }
        }
    }

    fn receive(&self, device: &DeviceCore, from: u32, bytes: &[u8], polled: &mut Polled) {
        let Polled { incoming, acknowledged, returned, datagrams, deferred, error } = polled;
        let Some(incoming) = incoming.get_mut(from as usize).filter(|_| !self.is_lost(from)) else {
            return;
        };
        let malformed = Error::MalformedPacket { process: from };
        let sink = |bytes: &[u8]| {
            // Only the thread that polls counts.
            let received = self.received[from as usize].load(Ordering::Relaxed) + 1;
            self.received[from as usize].store(received, Ordering::Release);
            match Packet::from_bytes(bytes) {
                Ok(packet) => {
                    let mut delivery = Delivery {
                        port: self,
                        from,
                        acknowledged: &mut *acknowledged,
                        returned: &*returned,
                        deferred: &mut *deferred,
                        datagrams: &mut *datagrams,
                    };
                    delivery.deliver(device, packet);
                }
                Err(Malformed) => {
                    error.get_or_insert_with(|| malformed.clone());
                }
            }
        };
        if incoming.receive(bytes, sink).is_err() {
            polled.error.get_or_insert(malformed);
            self.lose(device, from, &mut polled.deferred);
        }
    }

    /// Acknowledges the requests that were carried out since the last poll.
    fn acknowledge(&self, polled: &mut Polled) {
        for queue_pair in polled.acknowledged.drain(..) {
            if let Some((process, response)) = queue_pair.acknowledgement() {
                self.queue(process, &Packet::Response(response), None);
                self.queue_permit(process, &queue_pair);
            }
        }
    }

    /// Queues the permit of a queue pair, unless its peer has it.
    fn queue_permit(&self, process: u32, queue_pair: &QueuePairCore) {
        if let Some(permit) = queue_pair.permit_to_send() {
            self.queue(process, &permit, None);
        }
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
