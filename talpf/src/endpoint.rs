//! The verbs objects of one rank: a queue pair to every rank, itself too, one shared receive
//! queue, a completion queue for sends and one for arrivals.
#![allow(unsafe_code, reason = "registers the buffers that small messages land in")]

use std::array;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use ibverbs_sim::{
    Access, CompletionChannel, CompletionQueue, Connection, Context, Device, MemoryRegion,
    Operation, Payload, PostError, ProtectionDomain, QueuePair, QueuePairAttributes, QueuePairInit,
    QueuePairNumber, QueuePairState, ReceiveWorkRequest, ScatterGather, SendFlags, SendWorkRequest,
    SharedReceiveQueue, SharedReceiveQueueInit, WorkCompletion,
};

use crate::error::Error;
use crate::numbers::Rank;

/// Number of receives kept posted for all peers together.
const RECEIVES: u32 = 1024;
/// Number of receives posted at once.
pub(crate) const POST_BATCH: usize = 8;
/// Capacity of the send queues of a rank together, as far as the bounds of each allow.
const SENDS: u32 = 16 * 1024;
/// Largest capacity of a send queue.
const MOST_SENDS: u32 = 1024;
/// Number of unsignalled requests after which one is signalled, so that send slots are freed.
pub(crate) const SIGNAL_EVERY: u32 = 64;
/// Smallest capacity of a send queue: a signalled chain finds room behind unsignalled chains and
/// parts of long operations.
pub(crate) const FEWEST_SENDS: u32 = 4 * SIGNAL_EVERY;
/// Payloads of up to this many bytes are copied when they are posted.
pub(crate) const INLINE_BYTES: usize = 256;
/// The `wr_id` of requests without a pending operation.
pub(crate) const NOBODY: u64 = u64::MAX;

/// The verbs objects of one rank.
pub(crate) struct Endpoint {
    pub(crate) domain: ProtectionDomain,
    pub(crate) context: Context,
    pub(crate) max_transfer: usize,
    pub(crate) max_sge: usize,
    pub(crate) channel: CompletionChannel,
    pub(crate) sent: CompletionQueue,
    pub(crate) arrived: CompletionQueue,
    receives: SharedReceiveQueue,
    peers: Vec<Peer>,
    /// Ranks by queue pair number minus `first_number`.
    ranks: Vec<Option<Rank>>,
    first_number: u32,
    inbox: Inbox,
}

struct Peer {
    queue_pair: QueuePair,
    unsignalled: AtomicU32,
    /// `true` once connected to another process.
    is_remote: AtomicBool,
}

/// Eight bytes for every posted receive. The region is declared first, so it is dropped first.
struct Inbox {
    region: MemoryRegion,
    cells: Box<[AtomicU64]>,
}

impl Endpoint {
    /// Makes the objects of a rank among `ranks`; its queue pairs are not connected yet.
    pub(crate) fn new(device: &Device, ranks: u32) -> Result<Self, Error> {
        let context = device.open();
        let attributes = context.query_device();
        let domain = context.allocate_protection_domain();
        let channel = CompletionChannel::new();
        let sends = sends(ranks);
        // In the error state every request leaves a completion.
        let sent = context.create_completion_queue(sends * ranks, Some(&channel))?;
        let arrived = context.create_completion_queue(2 * RECEIVES, Some(&channel))?;
        let init = SharedReceiveQueueInit {
            // Twice the room: a slot is free a moment after its receive was taken.
            max_wr: 2 * RECEIVES,
            max_sge: 1,
        };
        let receives = domain.create_shared_receive_queue(&init)?;
        let max_sge = attributes.max_sge as usize;
        let peers = (0..ranks)
            .map(|_| {
                let init = QueuePairInit {
                    srq: Some(receives.clone()),
                    max_send_wr: sends,
                    max_send_sge: max_sge as u32,
                    max_inline_data: INLINE_BYTES as u32,
                    ..QueuePairInit::new(&sent, &arrived)
                };
                let queue_pair = domain.create_queue_pair(&init)?;
                let unsignalled = AtomicU32::new(0);
                Ok(Peer { queue_pair, unsignalled, is_remote: AtomicBool::new(false) })
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let inbox = Inbox::new(&domain, RECEIVES as usize)?;
        let numbers = peers.iter().map(|peer| peer.queue_pair.number().to_u32());
        let first_number = numbers.clone().min().unwrap_or(0);
        let last_number = numbers.clone().max().unwrap_or(0);
        let mut by_number = vec![None; (last_number - first_number) as usize + 1];
        for (rank, number) in numbers.enumerate() {
            by_number[(number - first_number) as usize] = Some(Rank(rank as u32));
        }
        let endpoint = Endpoint {
            domain,
            context,
            max_transfer: attributes.max_message_size as usize,
            max_sge,
            channel,
            sent,
            arrived,
            receives,
            peers,
            ranks: by_number,
            first_number,
            inbox,
        };
        endpoint.post_receives(&Vec::from_iter(0..u64::from(RECEIVES)))?;
        Ok(endpoint)
    }

    /// Returns the number of the queue pair that `rank` connects to.
    pub(crate) fn number_for(&self, rank: Rank) -> QueuePairNumber {
        self.peers[rank.index()].queue_pair.number()
    }

    /// Connects the queue pair for `rank` to the queue pair of `rank` for this one.
    pub(crate) fn connect(&self, rank: Rank, number: QueuePairNumber) -> Result<(), Error> {
        Ok(self.peers[rank.index()].queue_pair.connect(number, &Connection::default())?)
    }

    /// As [`Endpoint::connect`], for a rank in another process. The connection has no timeout, as a
    /// busy process may answer late.
    pub(crate) fn connect_remote(&self, rank: Rank, number: QueuePairNumber) -> Result<(), Error> {
        let connection = Connection { timeout_ns: 0, ..Connection::default() };
        let peer = &self.peers[rank.index()];
        peer.queue_pair.connect_to(rank.0, number, &connection)?;
        peer.is_remote.store(true, Ordering::Release);
        Ok(())
    }

    /// Puts the queue pairs to other processes into error, which flushes their requests; afterwards
    /// no remote request lands here.
    #[cold]
    pub(crate) fn cut_off(&self) {
        for peer in self.peers.iter().filter(|peer| peer.is_remote.load(Ordering::Acquire)) {
            // Every state allows a change to the error state.
            let _ = peer.queue_pair.modify(&QueuePairAttributes::new(QueuePairState::Error));
        }
    }

    /// Posts requests to one rank in order.
    #[inline]
    pub(crate) fn post(
        &self,
        target: Rank,
        requests: &[SendWorkRequest<'_>],
    ) -> Result<(), PostError> {
        self.peers[target.index()].queue_pair.post_send(requests)
    }

    /// Posts one request without a pending operation, its payload copied.
    #[inline]
    pub(crate) fn post_inline(
        &self,
        target: Rank,
        operation: Operation,
        bytes: &[u8],
    ) -> Result<(), PostError> {
        self.post_silent(target, operation, Payload::Inline(bytes))
    }

    /// Posts one request without a pending operation.
    #[inline]
    pub(crate) fn post_silent(
        &self,
        target: Rank,
        operation: Operation,
        payload: Payload<'_>,
    ) -> Result<(), PostError> {
        let peer = &self.peers[target.index()];
        let count = peer.unsignalled.fetch_add(1, Ordering::Relaxed);
        let signalled = count % SIGNAL_EVERY == SIGNAL_EVERY - 1;
        let flags = if signalled { SendFlags::SIGNALLED } else { SendFlags::NONE };
        peer.queue_pair.post_send(&[SendWorkRequest { flags, ..silent(operation, payload) }])
    }

    /// Posts requests without pending operations: all or none.
    pub(crate) fn post_all(
        &self,
        target: Rank,
        requests: &mut [SendWorkRequest<'_>],
    ) -> Result<(), PostError> {
        let peer = &self.peers[target.index()];
        let count = requests.len() as u32;
        let before = peer.unsignalled.fetch_add(count, Ordering::Relaxed);
        if before % SIGNAL_EVERY + count >= SIGNAL_EVERY
            && let Some(last) = requests.last_mut()
        {
            last.flags = last.flags | SendFlags::SIGNALLED;
        }
        peer.queue_pair.post_send_all(requests)
    }

    /// Returns `true` if the device has carried out every request to `target`.
    #[inline]
    pub(crate) fn is_drained(&self, target: Rank) -> bool {
        self.peers[target.index()].queue_pair.is_drained()
    }

    /// Returns `true` if the device has carried out every request.
    pub(crate) fn is_idle(&self) -> bool {
        self.peers.iter().all(|peer| peer.queue_pair.is_drained())
    }

    /// Posts receives, by the numbers of their cells: those of completions that were handled.
    pub(crate) fn post_receives(&self, cells: &[u64]) -> Result<(), Error> {
        for batch in cells.chunks(POST_BATCH) {
            let cell = |nth: usize| batch.get(nth).copied().unwrap_or_default();
            let scatter: [ScatterGather; POST_BATCH] =
                array::from_fn(|nth| self.inbox.region.slice(cell(nth) as usize * 8, 8));
            let requests: [ReceiveWorkRequest<'_>; POST_BATCH] = array::from_fn(|nth| {
                let scatter = std::slice::from_ref(&scatter[nth]);
                ReceiveWorkRequest { wr_id: cell(nth), scatter }
            });
            let posted = self.receives.post_receive(&requests[..batch.len()]);
            posted.map_err(|error| error.reason)?;
        }
        Ok(())
    }

    /// Returns the eight bytes of a SEND, before its receive is posted again.
    pub(crate) fn received(&self, completion: &WorkCompletion) -> u64 {
        let cell = self.inbox.cells.get(completion.wr_id as usize);
        cell.map_or(0, |cell| cell.load(Ordering::Relaxed))
    }

    /// Returns the rank at the other end of a queue pair of this rank.
    #[inline]
    pub(crate) fn rank_of(&self, number: QueuePairNumber) -> Option<Rank> {
        let index = number.to_u32().checked_sub(self.first_number)?;
        self.ranks.get(index as usize).copied().flatten()
    }
}

/// Returns a request without a pending operation or a completion.
pub(crate) fn silent(operation: Operation, payload: Payload<'_>) -> SendWorkRequest<'_> {
    SendWorkRequest { wr_id: NOBODY, operation, payload, flags: SendFlags::NONE }
}

/// Returns the capacity of a send queue in a run of `ranks`: its memory is needed for every pair.
fn sends(ranks: u32) -> u32 {
    (SENDS / ranks.max(1)).clamp(FEWEST_SENDS, MOST_SENDS)
}

/// Estimates the bytes of the endpoints of `ranks` in one process.
pub(crate) fn bytes(ranks: u32) -> u64 {
    /// Bytes of a slot in a queue.
    const SLOT: u64 = 32;
    /// Bytes of a queue pair and other state for each peer.
    const PEER: u64 = 2048;
    let sent = u64::from(sends(ranks) * ranks).next_power_of_two();
    let arrived = u64::from(4 * RECEIVES);
    u64::from(ranks) * ((sent + arrived) * SLOT + u64::from(ranks) * PEER)
}

impl Inbox {
    fn new(domain: &ProtectionDomain, cells: usize) -> Result<Self, Error> {
        let cells: Box<[AtomicU64]> = (0..cells).map(|_| AtomicU64::new(0)).collect();
        let start = NonNull::from(&*cells).cast();
        // SAFETY: the cells are dropped after the region, do not move, are atomics, and each is
        // the target of one posted receive at a time.
        let region = unsafe { domain.register(start, cells.len() * 8, Access::LOCAL_WRITE)? };
        Ok(Inbox { region, cells })
    }
}
