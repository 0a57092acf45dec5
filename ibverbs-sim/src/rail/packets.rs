//! The rail of packets, over any [`Wire`].
//!
//! A frame is one packet: its head as little-endian words, and its body. Packets are queued under the
//! locks of the rail and given to the wire outside of them, by one thread at a time, so that a wire
//! may call whatever it likes. A wire takes packets as vectors of their own: this rail allocates.

use std::{collections::VecDeque, ptr::NonNull, sync::Arc};

use talpf_primitives::{AtomicBool, AtomicUsize, Mutex, Ordering, TryLock};

use super::{
    Armed, LossReason, Posted, Rail, RailAddress, RailError, RailEvent, RailKey, RailLimits,
    emulation::{Emulation, Operation, OperationKind, Path},
    frame::{self, Frame, KeyClaim, Malformed},
    registrations::{KeyNumber, Registrations},
};
use crate::{Access, Device, DeviceConfig, Result, Wire, callback};

impl Device {
    /// Creates the device of this process on the rail of packets over `wire`; otherwise as
    /// [`with_rail`](Self::with_rail).
    ///
    /// **Errors**: as [`Device::new`].
    pub fn with_wire(config: DeviceConfig, wire: Arc<dyn Wire>) -> Result<Self> {
        Self::with_rail(config, Arc::new(Packets::new(wire)))
    }
}

/// Most bytes of a message.
const EAGER_BYTES: usize = 64 << 10;
/// Bytes queued for a process beyond which nothing more is.
const QUEUED_LIMIT: usize = 8 << 20;

const WORD: usize = size_of::<u64>();

/// A rail whose operations are packets of a [`Wire`], carried out by the processors of both ends.
pub struct Packets {
    wire: Arc<dyn Wire>,
    registrations: Registrations,
    emulation: Emulation,
    outgoing: Outgoing,
    lost: Box<[AtomicBool]>,
    /// Processes that were given up.
    silent: Box<[AtomicBool]>,
    /// Held by the thread that polls.
    polling: TryLock<()>,
}

impl Packets {
    /// Makes a rail of a wire that nobody else uses.
    pub fn new(wire: Arc<dyn Wire>) -> Self {
        let processes = wire.processes();
        Self {
            wire,
            registrations: Registrations::new(),
            emulation: Emulation::new(processes),
            outgoing: Outgoing((0..processes).map(|_| Queue::new()).collect()),
            lost: (0..processes).map(|_| AtomicBool::new(false)).collect(),
            silent: (0..processes).map(|_| AtomicBool::new(false)).collect(),
            polling: TryLock::new(()),
        }
    }

    /// Checks that operations to a process are possible.
    fn check(&self, to: u32) -> Result<(), RailError> {
        match self.lost.get(to as usize) {
            Some(lost) if to != self.process() => match lost.load(Ordering::Acquire) {
                true => Err(RailError::Lost { process: to }),
                false => Ok(()),
            },
            _ => Err(RailError::NoSuchPeer { process: to, processes: self.processes() }),
        }
    }

    /// Posts an operation.
    ///
    /// # Safety
    ///
    /// The contract of [`Rail::write`] and [`Rail::read`].
    #[allow(unsafe_code, reason = "the caller's contract is that of the emulation")]
    unsafe fn post(
        &self,
        to: u32,
        kind: OperationKind,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        context: u64,
    ) -> Result<Posted, RailError> {
        self.check(to)?;
        let claim = KeyClaim { key: remote.key.number(), offset: remote.offset };
        let operation = Operation::new(kind, local, claim, context);
        // SAFETY: the contract of this function.
        let posted =
            unsafe { self.emulation.post(to, operation, &self.outgoing, &self.registrations) };
        self.outgoing.flush(to, &*self.wire);
        posted
    }

    /// Gives a process up. Returns the number of events.
    fn lose(&self, process: u32, reason: LossReason, sink: &mut dyn FnMut(RailEvent<'_>)) -> usize {
        if self.lost[process as usize].swap(true, Ordering::AcqRel) {
            return 0;
        }
        let mut events = 0;
        self.emulation.lose(process, reason, &mut |event| {
            events += 1;
            sink(event);
        });
        events
    }

    fn receive(
        &self,
        from: u32,
        packet: &[u8],
        sink: &mut dyn FnMut(RailEvent<'_>),
    ) -> Result<(), Malformed> {
        let (head, words, body) = frame::cut(packet)?;
        let frame = Frame::decode(&head[..words], body)?;
        self.emulation.receive(from, frame, &self.outgoing, &self.registrations, sink)
    }
}

#[allow(unsafe_code, reason = "the contract of the trait is passed on to the emulation")]
impl Rail for Packets {
    fn process(&self) -> u32 {
        self.wire.process()
    }

    fn processes(&self) -> u32 {
        self.wire.processes()
    }

    fn limits(&self) -> RailLimits {
        RailLimits {
            eager_bytes: EAGER_BYTES,
            notice_bytes: 4,
            needs_peer_processor: true,
            is_mapped: false,
            long_bytes: None,
            has_event: self.wire.descriptor().is_some(),
        }
    }

    unsafe fn register(&self, memory: NonNull<[u8]>, access: Access) -> Result<RailKey, RailError> {
        // SAFETY: the contract of this function.
        let key = unsafe { self.registrations.insert(memory, access)? };
        Ok(RailKey::from_number(key.number()))
    }

    fn deregister(&self, key: &RailKey) -> Result<(), RailError> {
        self.registrations.remove(KeyNumber::from_claim(key.number()))
    }

    fn send(&self, to: u32, bytes: &[u8]) -> Result<(), RailError> {
        self.check(to)?;
        if bytes.len() > EAGER_BYTES {
            return Err(RailError::TooLong { length: bytes.len(), limit: EAGER_BYTES });
        }
        if !self.outgoing.push(to, &Frame::Message(bytes)) {
            return Err(RailError::NoRoom { process: to });
        }
        self.outgoing.flush(to, &*self.wire);
        Ok(())
    }

    unsafe fn write(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        notice: Option<u32>,
        context: u64,
    ) -> Result<Posted, RailError> {
        // SAFETY: the contract of this function.
        unsafe { self.post(to, OperationKind::Write { notice }, local, remote, context) }
    }

    unsafe fn read(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        context: u64,
    ) -> Result<Posted, RailError> {
        // SAFETY: the contract of this function.
        unsafe { self.post(to, OperationKind::Read, local, remote, context) }
    }

    fn poll(&self, sink: &mut dyn FnMut(RailEvent<'_>)) -> usize {
        let Some(_polling) = self.polling.try_lock() else { return 0 };
        let mut events = 0;
        let mut counting = |event: RailEvent<'_>| {
            events += 1;
            sink(event);
        };
        self.wire.poll(&mut |from, packet| {
            if self.check(from).is_err() {
                return;
            }
            if let Err(Malformed(what)) = self.receive(from, packet, &mut counting) {
                self.lose(from, LossReason::Malformed(what), &mut counting);
            }
        });
        for process in (0..self.processes()).filter(|process| *process != self.process()) {
            if self.silent[process as usize].load(Ordering::Acquire) {
                self.lose(process, LossReason::Silent, &mut counting);
            } else if self.wire.is_lost(process) {
                self.lose(process, LossReason::Ended, &mut counting);
            } else if self.outgoing.has_panicked(process) {
                self.lose(process, LossReason::WirePanicked, &mut counting);
            } else if self.check(process).is_ok() {
                self.outgoing.flush(process, &*self.wire);
                self.emulation.resume(process, &self.outgoing, &self.registrations);
                self.outgoing.flush(process, &*self.wire);
            }
        }
        events
    }

    fn has_unsent(&self) -> bool {
        let others = (0..self.processes()).filter(|process| self.check(*process).is_ok());
        let mut others = others.map(|process| (process, &self.outgoing.0[process as usize]));
        let is_unsent = |(process, queue): (u32, &Queue)| {
            self.emulation.has_unsent(process) || !queue.packets.lock().is_empty()
        };
        others.any(is_unsent) || self.wire.has_unsent()
    }

    fn is_lost(&self, process: u32) -> bool {
        matches!(self.check(process), Err(RailError::Lost { .. }))
    }

    fn give_up(&self, process: u32) {
        if let Some(silent) = self.silent.get(process as usize) {
            silent.store(true, Ordering::Release);
            callback::call("the end of a connection", || self.wire.give_up(process));
        }
    }

    fn arm(&self) -> Armed<'_> {
        let mut others = (0..self.processes()).filter(|process| self.check(*process).is_ok());
        match self.wire.descriptor() {
            // What the emulation has not sent waits for the wire, which may have room by now.
            Some(_) if others.any(|process| self.emulation.has_unsent(process)) => Armed::Nothing,
            Some(descriptor) => Armed::Descriptor(descriptor),
            None => Armed::Nothing,
        }
    }
}

/// Packets for each process that the wire does not have yet.
struct Outgoing(Box<[Queue]>);

struct Queue {
    packets: Mutex<QueuedPackets>,
    /// Bytes that the wire had not sent when it was last asked.
    unsent: AtomicUsize,
    /// Set once the wire has panicked with a packet, which may be missing.
    has_panicked: AtomicBool,
}

#[derive(Default)]
struct QueuedPackets {
    queue: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Set while a thread gives packets to the wire.
    is_flushed: bool,
}

impl QueuedPackets {
    fn is_empty(&self) -> bool {
        self.queue.is_empty() && !self.is_flushed
    }
}

impl Queue {
    fn new() -> Self {
        let (unsent, has_panicked) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { packets: Mutex::default(), unsent, has_panicked }
    }
}

impl Outgoing {
    fn has_panicked(&self, to: u32) -> bool {
        self.0[to as usize].has_panicked.load(Ordering::Acquire)
    }

    /// Gives the queued packets of a process to the wire, unless another thread does. The caller
    /// holds no lock.
    fn flush(&self, to: u32, wire: &dyn Wire) {
        let queue = &self.0[to as usize];
        let mut is_first = true;
        loop {
            let mut packets = queue.packets.lock();
            if is_first && packets.is_flushed {
                return;
            }
            let next = packets.queue.pop_front();
            packets.bytes -= next.as_ref().map_or(0, Vec::len);
            packets.is_flushed = next.is_some();
            drop(packets);
            is_first = false;
            let Some(packet) = next else { break };
            if callback::call("the send of a wire", || wire.send(to, packet)).is_none() {
                queue.has_panicked.store(true, Ordering::Release);
            }
        }
        queue.unsent.store(wire.unsent_bytes(to), Ordering::Relaxed);
    }
}

impl Path for Outgoing {
    const PIECE: usize = 1 << 20;

    fn push(&self, to: u32, frame: &Frame<'_>) -> bool {
        let queue = &self.0[to as usize];
        let mut packets = queue.packets.lock();
        if packets.bytes + queue.unsent.load(Ordering::Relaxed) > QUEUED_LIMIT {
            return false;
        }
        let encoded = frame.encode();
        let mut packet = Vec::with_capacity(encoded.head().len() * WORD + encoded.body.len());
        encoded.head().iter().for_each(|word| packet.extend(word.to_le_bytes()));
        packet.extend_from_slice(encoded.body);
        packets.bytes += packet.len();
        packets.queue.push_back(packet);
        true
    }
}
