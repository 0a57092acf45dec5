//! Pairs of connected ends, and registered memory that tests can read.
//!
//! The ends are on one device, or on two that a rail joins, as `devices::joined` of the test says. Then whatever an
//! end does is followed by the packets of both devices, until none is left: so the tests read as on one device.
#![allow(dead_code, reason = "every test file uses another part")]
#![allow(unsafe_code, reason = "the one place where tests register memory")]

use std::{
    ops::Deref,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    thread,
};

use ibverbs_sim::*;

use crate::devices::joined;

/// Device of a test, or two that a rail joins, on which ends are created alternately.
pub(crate) struct Devices {
    joined: Arc<Joined>,
    ends: AtomicU32,
}

/// Devices with their rails; of one device without a rail, there is none.
pub(crate) struct Joined {
    pub(crate) devices: Vec<Device>,
    pub(crate) rails: Vec<Arc<dyn Rail>>,
}

impl Joined {
    /// Creates a device on each rail.
    pub(crate) fn on(rails: Vec<Arc<dyn Rail>>, config: &DeviceConfig) -> Self {
        let on = |rail: &Arc<dyn Rail>| Device::with_rail(config.clone(), Arc::clone(rail));
        Self { devices: rails.iter().map(|rail| on(rail).unwrap()).collect(), rails }
    }
}

impl Devices {
    pub(crate) fn new(config: DeviceConfig) -> Self {
        Self { joined: Arc::new(joined(&config)), ends: AtomicU32::new(0) }
    }

    /// Opens a context of the first device.
    pub(crate) fn open(&self) -> Context {
        self.joined.devices[0].open()
    }

    /// Returns the number of packets that the first device has sent to the second.
    pub(crate) fn packets_from_the_first(&self) -> u64 {
        self.joined.devices[0].traffic(1).0
    }

    /// Returns `true` if the first device says that it copies to and from memory of the second at once.
    pub(crate) fn maps_from_the_first(&self) -> bool {
        self.joined.devices[0].maps_memory_of(1)
    }
}

/// Device of an end. A test moves the packets of one that is given alone.
#[derive(Clone)]
pub(crate) struct Site {
    device: Device,
    process: u32,
    joined: Option<Arc<Joined>>,
}

impl From<&Device> for Site {
    fn from(device: &Device) -> Self {
        Self { device: device.clone(), process: 0, joined: None }
    }
}

impl From<&Devices> for Site {
    fn from(all: &Devices) -> Self {
        let end = all.ends.fetch_add(1, Ordering::Relaxed);
        let process = end % all.joined.devices.len() as u32;
        let device = all.joined.devices[process as usize].clone();
        Self { device, process, joined: Some(Arc::clone(&all.joined)) }
    }
}

impl Site {
    /// Connects a queue pair of any end to one of this end.
    pub(crate) fn connect(&self, here: &QueuePair, from: &QueuePair, connection: &Connection) {
        from.connect_to(self.process, here.number(), connection).unwrap();
    }

    /// Returns the number of rounds of a test that takes so many without a rail, which is much faster.
    pub(crate) fn rounds(&self, without_rail: u64) -> u64 {
        if self.is_joined() { without_rail / 20 } else { without_rail }
    }

    fn is_joined(&self) -> bool {
        self.joined.as_deref().is_some_and(|joined| !joined.rails.is_empty())
    }

    fn settle(&self) {
        if let Some(joined) = self.joined.as_deref().filter(|_| self.is_joined()) {
            settle(&joined.devices);
        }
    }

    /// Allocates memory of the rail, which it may map, or else of the program.
    fn allocate(&self, length: usize) -> Words {
        let rails = self.joined.as_deref().map_or(&[][..], |joined| &joined.rails);
        let of_rail =
            rails.get(self.process as usize).and_then(|rail| rail.allocate(length.max(8)));
        match of_rail {
            Some(memory) => Words::new(OfRail(memory)),
            None => Words::of_the_program(length),
        }
    }
}

/// Memory of a rail, as words.
struct OfRail(Box<dyn RailMemory>);

impl AsRef<[AtomicU64]> for OfRail {
    fn as_ref(&self) -> &[AtomicU64] {
        let memory = self.0.memory();
        // SAFETY: memory of a rail begins at a page; it is used as atomics, and by requests at other times.
        unsafe { std::slice::from_raw_parts(memory.cast().as_ptr(), memory.len() / 8) }
    }
}

/// Moves packets until none are left: what one side has sent can be received by the other at once, or soon.
pub(crate) fn settle(devices: &[Device]) {
    let moved = || devices.iter().map(|device| device.progress().unwrap()).sum::<usize>();
    while moved() > 0 || devices.iter().any(Device::has_unsent) || are_under_way(devices) {}
}

/// Returns `true` if packets between the devices, one of each process, have not arrived.
fn are_under_way(devices: &[Device]) -> bool {
    let processes = || (0..).zip(devices);
    let mut pairs = processes().flat_map(|from| processes().map(move |to| (from, to)));
    pairs.any(|((from, sender), (to, receiver))| {
        from != to && sender.traffic(to).0 != receiver.traffic(from).1
    })
}

/// An end of a connection with the objects it needs.
pub(crate) struct End {
    pub(crate) context: Context,
    pub(crate) domain: ProtectionDomain,
    pub(crate) send_cq: CompletionQueue,
    pub(crate) recv_cq: CompletionQueue,
    pub(crate) queue_pair: QueuePair,
    pub(crate) site: Site,
}

impl End {
    /// Creates an end in RESET.
    pub(crate) fn new(site: impl Into<Site>, adjust: impl Fn(&mut QueuePairInit)) -> Self {
        let site = site.into();
        let context = site.device.open();
        let domain = context.allocate_protection_domain();
        let send_cq = context.create_completion_queue(256, None).unwrap();
        let recv_cq = context.create_completion_queue(256, None).unwrap();
        let mut init = QueuePairInit::new(&send_cq, &recv_cq);
        adjust(&mut init);
        let queue_pair = domain.create_queue_pair(&init).unwrap();
        Self { context, domain, send_cq, recv_cq, queue_pair, site }
    }

    /// Moves packets of devices that a rail joins until none are left.
    pub(crate) fn settle(&self) {
        self.site.settle();
    }

    pub(crate) fn buffer(&self, length: usize) -> Buffer {
        self.buffer_with(&self.domain, length, Access::ALL)
    }

    /// Registers memory of this end in one of its domains.
    pub(crate) fn buffer_with(
        &self,
        domain: &ProtectionDomain,
        length: usize,
        access: Access,
    ) -> Buffer {
        let buffer = Buffer::in_memory(domain, self.site.allocate(length), length, access);
        self.settle();
        buffer
    }

    pub(crate) fn post(&self, requests: &[SendWorkRequest<'_>]) {
        self.try_post(requests).unwrap();
    }

    pub(crate) fn try_post(&self, requests: &[SendWorkRequest<'_>]) -> Result<(), PostError> {
        let posted = self.queue_pair.post_send(requests);
        self.settle();
        posted
    }

    /// Moves the time of this end.
    pub(crate) fn advance(&self, now_ns: u64) {
        self.context.advance(now_ns);
        self.settle();
    }

    /// Connects this end to another one, which has to do the same.
    pub(crate) fn connect(&self, to: &End, connection: &Connection) {
        to.site.connect(&to.queue_pair, &self.queue_pair, connection);
    }

    /// Waits for so many completions of sends, for tests of several threads: another one may be about to leave them.
    pub(crate) fn wait_sent(&self, count: usize) -> Vec<WorkCompletion> {
        let mut all = self.sent();
        while all.len() < count {
            thread::yield_now();
            all.extend(self.sent());
        }
        all
    }

    /// Posts receives of no bytes.
    pub(crate) fn receives(&self, wr_ids: std::ops::Range<u64>) {
        for wr_id in wr_ids {
            self.receive(wr_id, &[]);
        }
    }

    pub(crate) fn receive(&self, wr_id: u64, scatter: &[ScatterGather]) {
        self.queue_pair.post_receive(&[ReceiveWorkRequest { wr_id, scatter }]).unwrap();
        self.settle();
    }

    pub(crate) fn sent(&self) -> Vec<WorkCompletion> {
        self.settle();
        poll_all(&self.send_cq)
    }

    pub(crate) fn received(&self) -> Vec<WorkCompletion> {
        self.settle();
        poll_all(&self.recv_cq)
    }

    pub(crate) fn go_to(&self, state: QueuePairState) {
        self.queue_pair.modify(&QueuePairAttributes::new(state)).unwrap();
        self.settle();
    }
}

pub(crate) fn device() -> Devices {
    Devices::new(DeviceConfig::default())
}

pub(crate) fn faulty(fault: FaultPlan) -> Devices {
    println!("seed {}", fault.seed);
    Devices::new(DeviceConfig { fault: Some(fault), ..DeviceConfig::default() })
}

pub(crate) fn connect(a: &End, b: &End, connection: &Connection) {
    a.connect(b, connection);
    b.connect(a, connection);
}

/// Creates two connected ends with default parameters.
pub(crate) fn pair() -> (End, End) {
    pair_on(&device(), &Connection::default())
}

pub(crate) fn pair_on(device: &Devices, connection: &Connection) -> (End, End) {
    let ends = (End::new(device, |_| {}), End::new(device, |_| {}));
    connect(&ends.0, &ends.1, connection);
    ends
}

/// Registered memory, aligned to 8 bytes.
pub(crate) struct Buffer {
    pub(crate) region: MemoryRegion,
    words: Words,
}

/// Memory of a buffer.
pub(crate) struct Words(Box<dyn AsRef<[AtomicU64]> + Send + Sync>);

impl Words {
    pub(crate) fn new(words: impl AsRef<[AtomicU64]> + Send + Sync + 'static) -> Self {
        Self(Box::new(words))
    }

    fn of_the_program(length: usize) -> Self {
        let words: Box<[AtomicU64]> =
            (0..length.div_ceil(8).max(1)).map(|_| AtomicU64::new(0)).collect();
        Self::new(words)
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        (*self.0).as_ref()
    }
}

impl Buffer {
    pub(crate) fn new(domain: &ProtectionDomain, length: usize, access: Access) -> Self {
        Self::in_memory(domain, Words::of_the_program(length), length, access)
    }

    /// Registers `length` bytes of `words`.
    pub(crate) fn in_memory(
        domain: &ProtectionDomain,
        words: Words,
        length: usize,
        access: Access,
    ) -> Self {
        let start = NonNull::from(&*words).cast();
        // SAFETY: `words` are dropped after `region`; they are atomics, and tests use them only
        // when no request is under way.
        let region = unsafe { domain.register(start, length, access).unwrap() };
        Self { region, words }
    }

    pub(crate) fn fill(&self, bytes: &[u8]) {
        for (word, chunk) in self.words.iter().zip(bytes.chunks(8)) {
            let mut whole = word.load(Ordering::SeqCst).to_ne_bytes();
            whole[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_ne_bytes(whole), Ordering::SeqCst);
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let all = (*self.words)
            .as_ref()
            .iter()
            .flat_map(|word| word.load(Ordering::SeqCst).to_ne_bytes());
        all.take(self.region.length()).collect()
    }

    /// Deregisters the memory and returns it.
    pub(crate) fn deregister(self) -> Words {
        self.region.deregister();
        self.words
    }

    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        &self.words[index]
    }

    pub(crate) fn all(&self) -> ScatterGather {
        self.region.slice(0, self.region.length() as u32)
    }
}

/// Registers a region of no bytes, or one that must be refused.
pub(crate) fn register(
    domain: &ProtectionDomain,
    start: NonNull<u8>,
    length: usize,
    access: Access,
) -> Result<MemoryRegion> {
    // SAFETY: the region has no bytes, or registration fails.
    unsafe { domain.register(start, length, access) }
}

/// Makes a signalled request.
pub(crate) fn request<'a>(
    wr_id: u64,
    operation: Operation,
    payload: Payload<'a>,
) -> SendWorkRequest<'a> {
    SendWorkRequest { wr_id, operation, payload, flags: SendFlags::SIGNALLED }
}

pub(crate) fn unsignalled<'a>(
    wr_id: u64,
    operation: Operation,
    payload: Payload<'a>,
) -> SendWorkRequest<'a> {
    SendWorkRequest { flags: SendFlags::NONE, ..request(wr_id, operation, payload) }
}

/// Makes a signalled SEND of no bytes.
pub(crate) fn send(wr_id: u64) -> SendWorkRequest<'static> {
    request(wr_id, Operation::Send, Payload::Inline(b""))
}

pub(crate) fn poll_all(cq: &CompletionQueue) -> Vec<WorkCompletion> {
    let mut all = Vec::new();
    let mut batch = [WorkCompletion::default(); 3];
    loop {
        let count = cq.poll(&mut batch);
        all.extend_from_slice(&batch[..count]);
        if count == 0 {
            return all;
        }
    }
}

pub(crate) fn statuses(completions: &[WorkCompletion]) -> Vec<(u64, CompletionStatus)> {
    completions.iter().map(|completion| (completion.wr_id, completion.status)).collect()
}
