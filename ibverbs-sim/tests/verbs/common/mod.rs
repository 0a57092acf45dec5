//! Pairs of connected ends, and registered memory that tests can read.
#![allow(dead_code, reason = "every test file uses another part")]
#![allow(unsafe_code, reason = "the one place where tests register memory")]

use std::{
    ops::Deref,
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering},
};

use ibverbs_sim::*;

/// An end of a connection with the objects it needs.
pub(crate) struct End {
    pub(crate) context: Context,
    pub(crate) domain: ProtectionDomain,
    pub(crate) send_cq: CompletionQueue,
    pub(crate) recv_cq: CompletionQueue,
    pub(crate) queue_pair: QueuePair,
}

impl End {
    /// Creates an end in RESET.
    pub(crate) fn new(device: &Device, adjust: impl Fn(&mut QueuePairInit)) -> Self {
        let context = device.open();
        let domain = context.allocate_protection_domain();
        let send_cq = context.create_completion_queue(256, None).unwrap();
        let recv_cq = context.create_completion_queue(256, None).unwrap();
        let mut init = QueuePairInit::new(&send_cq, &recv_cq);
        adjust(&mut init);
        let queue_pair = domain.create_queue_pair(&init).unwrap();
        Self { context, domain, send_cq, recv_cq, queue_pair }
    }

    pub(crate) fn buffer(&self, length: usize) -> Buffer {
        Buffer::new(&self.domain, length, Access::ALL)
    }

    pub(crate) fn post(&self, requests: &[SendWorkRequest<'_>]) {
        self.queue_pair.post_send(requests).unwrap();
    }

    /// Posts receives of no bytes.
    pub(crate) fn receives(&self, wr_ids: std::ops::Range<u64>) {
        for wr_id in wr_ids {
            self.queue_pair.post_receive(&[ReceiveWorkRequest { wr_id, scatter: &[] }]).unwrap();
        }
    }

    pub(crate) fn receive(&self, wr_id: u64, scatter: &[ScatterGather]) {
        self.queue_pair.post_receive(&[ReceiveWorkRequest { wr_id, scatter }]).unwrap();
    }

    pub(crate) fn sent(&self) -> Vec<WorkCompletion> {
        poll_all(&self.send_cq)
    }

    pub(crate) fn received(&self) -> Vec<WorkCompletion> {
        poll_all(&self.recv_cq)
    }

    pub(crate) fn go_to(&self, state: QueuePairState) {
        self.queue_pair.modify(&QueuePairAttributes::new(state)).unwrap();
    }
}

pub(crate) fn device() -> Device {
    Device::new(DeviceConfig::default()).unwrap()
}

pub(crate) fn faulty(fault: FaultPlan) -> Device {
    println!("seed {}", fault.seed);
    Device::new(DeviceConfig { fault: Some(fault), ..DeviceConfig::default() }).unwrap()
}

pub(crate) fn connect(a: &End, b: &End, connection: &Connection) {
    a.queue_pair.connect(b.queue_pair.number(), connection).unwrap();
    b.queue_pair.connect(a.queue_pair.number(), connection).unwrap();
}

/// Creates two connected ends with default parameters.
pub(crate) fn pair() -> (End, End) {
    pair_on(&device(), &Connection::default())
}

pub(crate) fn pair_on(device: &Device, connection: &Connection) -> (End, End) {
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
}

impl Deref for Words {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        (*self.0).as_ref()
    }
}

impl Buffer {
    pub(crate) fn new(domain: &ProtectionDomain, length: usize, access: Access) -> Self {
        let words: Box<[AtomicU64]> =
            (0..length.div_ceil(8).max(1)).map(|_| AtomicU64::new(0)).collect();
        Self::in_memory(domain, Words::new(words), length, access)
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
