//! The verbs objects of one rank: queue pairs to the ranks that it communicates with, itself too, one
//! shared receive queue, completion queues for sends and one for arrivals.
#![allow(unsafe_code, reason = "registers the buffers that small messages land in")]

mod capacity;
mod connector;
mod doubling;
mod peer_ranks;
mod send_completions;

use std::array;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ibverbs_sim::{
    Access, CompletionChannel, CompletionQueue, Connection, Context, Device, MemoryRegion,
    Operation, Payload, PostError, ProtectionDomain, QueuePairAttributes, QueuePairNumber,
    QueuePairState, ReceiveWorkRequest, ScatterGather, SendFlags, SendWorkRequest,
    SharedReceiveQueue, WorkCompletion,
};

use self::capacity::receives;
pub(crate) use self::capacity::{
    FEWEST_SENDS, INLINE_BYTES, INLINE_BYTES_BETWEEN_PROCESSES, POST_BATCH, SIGNAL_EVERY, bytes,
};
use self::connector::{Cells, Connected, Connector, End};
use self::send_completions::SendCompletions;
use crate::error::Error;
use crate::numbers::Rank;

/// The `wr_id` of requests without a pending operation.
pub(crate) const NOBODY: u64 = u64::MAX;

/// The verbs objects of one rank.
pub(crate) struct Endpoint {
    pub(crate) domain: ProtectionDomain,
    pub(crate) context: Context,
    pub(crate) max_transfer: usize,
    pub(crate) max_sge: usize,
    /// Most bytes of a payload that is copied as it is posted.
    pub(crate) inline_bytes: usize,
    pub(crate) channel: CompletionChannel,
    pub(crate) sent: Arc<SendCompletions>,
    pub(crate) arrived: CompletionQueue,
    receives: SharedReceiveQueue,
    rank: Rank,
    /// Queue pairs by peer, each there from the first request between the two ranks on.
    cells: Cells,
    connector: Arc<Connector>,
    inbox: Inbox,
}

/// Eight bytes for every posted receive. The region is declared first, so it is dropped first.
struct Inbox {
    region: MemoryRegion,
    cells: Box<[AtomicU64]>,
}

impl Endpoint {
    /// Makes the objects of all `ranks` of a run in one process.
    pub(crate) fn all(device: &Device, ranks: u32) -> Result<Vec<Self>, Error> {
        let ends = (0..ranks).map(|_| End::new(device, ranks, ranks)).collect::<Result<_, _>>()?;
        let connector = Arc::new(Connector::new(0, ends));
        (0..ranks).map(|rank| Endpoint::new(&connector, Rank(rank), receives(ranks))).collect()
    }

    /// Makes the objects of the ranks `here` of a process among `ranks`. Their queue pairs to other
    /// processes are not connected yet.
    pub(crate) fn of_process(
        device: &Device,
        here: Range<u32>,
        ranks: u32,
    ) -> Result<Vec<Self>, Error> {
        let count = here.len() as u32;
        let ends = here.clone().map(|_| End::new(device, count, ranks));
        let connector = Arc::new(Connector::new(here.start, ends.collect::<Result<_, _>>()?));
        here.map(|rank| {
            connector.open_remote(Rank(rank))?;
            Endpoint::new(&connector, Rank(rank), receives(count))
        })
        .collect()
    }

    fn new(connector: &Arc<Connector>, rank: Rank, receives: u32) -> Result<Self, Error> {
        let end = connector.end(rank);
        let attributes = end.context.query_device();
        let endpoint = Endpoint {
            domain: end.domain.clone(),
            context: end.context.clone(),
            max_transfer: attributes.max_message_size as usize,
            max_sge: attributes.max_sge as usize,
            inline_bytes: end.inline_bytes as usize,
            channel: end.channel.clone(),
            sent: Arc::clone(&end.sent),
            arrived: end.arrived.clone(),
            receives: end.receives.clone(),
            rank,
            cells: Arc::clone(&end.cells),
            connector: Arc::clone(connector),
            inbox: Inbox::new(&end.domain, receives as usize)?,
        };
        endpoint.post_receives(&Vec::from_iter(0..u64::from(receives)))?;
        Ok(endpoint)
    }

    /// Returns the queue pair to `rank`, if there was a request between the two ranks.
    #[inline]
    fn connected(&self, rank: Rank) -> Option<&Connected> {
        self.cells.get(rank)?.get().map(|connected| &**connected)
    }

    /// Returns the queue pair to `target`, which the first request makes.
    ///
    /// **Errors**: a limit of the device is exceeded.
    #[inline]
    fn queue_pair_to(&self, target: Rank) -> Result<&Connected, PostError> {
        self.connected(target).map_or_else(|| self.connect_to(target), Ok)
    }

    #[cold]
    fn connect_to(&self, target: Rank) -> Result<&Connected, PostError> {
        let refused = |reason| PostError { index: 0, reason };
        self.connector.connect(self.rank, target).map_err(refused)
    }

    /// Returns the number of the queue pair that `rank`, of another process, connects to.
    pub(crate) fn number_for(&self, rank: Rank) -> QueuePairNumber {
        self.connected(rank).map_or_else(QueuePairNumber::default, |to| to.queue_pair.number())
    }

    /// Returns the queue pair for `rank`, which was made at the start.
    fn opened(&self, rank: Rank) -> Result<&Connected, Error> {
        self.connected(rank).ok_or(Error::NoSuchRank { rank, ranks: self.cells.ranks() })
    }

    /// Connects the queue pair for `rank`, of another process, to the queue pair of `rank` for this one.
    /// The connection has no timeout, as a busy process may answer late, unless the link may lose the request.
    pub(crate) fn connect_remote(
        &self,
        rank: Rank,
        process: u32,
        number: QueuePairNumber,
        has_faults: bool,
    ) -> Result<(), Error> {
        let with_timeout = Connection::default();
        let timeout_ns = if has_faults { with_timeout.timeout_ns } else { 0 };
        let connection = Connection { timeout_ns, ..with_timeout };
        let to = self.opened(rank)?;
        to.queue_pair.connect_to(process, number, &connection)?;
        to.is_remote.store(true, Ordering::Release);
        Ok(())
    }

    fn each_connected(&self) -> impl Iterator<Item = &Connected> {
        self.cells.iter().filter_map(|(_, cell)| cell.get()).map(|connected| &**connected)
    }

    /// Puts the queue pairs to other processes into error, which flushes their requests; afterwards
    /// no remote request lands here.
    #[cold]
    pub(crate) fn cut_off(&self) {
        for to in self.each_connected().filter(|to| to.is_remote.load(Ordering::Acquire)) {
            // Every state allows a change to the error state.
            let _ = to.queue_pair.modify(&QueuePairAttributes::new(QueuePairState::Error));
        }
    }

    /// Posts requests to one rank in order.
    #[inline]
    pub(crate) fn post(
        &self,
        target: Rank,
        requests: &[SendWorkRequest<'_>],
    ) -> Result<(), PostError> {
        self.queue_pair_to(target)?.queue_pair.post_send(requests)
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
        let peer = self.queue_pair_to(target)?;
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
        let peer = self.queue_pair_to(target)?;
        let count = requests.len() as u32;
        let before = peer.unsignalled.fetch_add(count, Ordering::Relaxed);
        if before % SIGNAL_EVERY + count >= SIGNAL_EVERY
            && let Some(last) = requests.last_mut()
        {
            last.flags = last.flags | SendFlags::SIGNALLED;
        }
        let posted = peer.queue_pair.post_send_all(requests);
        if posted.is_err() {
            // A signal that was not sent is that of later requests.
            peer.unsignalled.fetch_sub(count, Ordering::Relaxed);
        }
        posted
    }

    /// Returns `true` if the device has carried out every request to `target`.
    #[inline]
    pub(crate) fn is_drained(&self, target: Rank) -> bool {
        self.connected(target).is_none_or(|to| to.queue_pair.is_drained())
    }

    /// Returns `true` if requests to `target`, of another process, wait for its response.
    pub(crate) fn awaits_response(&self, target: Rank) -> bool {
        self.connected(target).is_some_and(|to| to.queue_pair.awaits_response())
    }

    /// Returns `true` if the device has carried out every request.
    pub(crate) fn is_idle(&self) -> bool {
        self.each_connected().all(|to| to.queue_pair.is_drained())
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
        self.connector.ranks.get(number)
    }
}

/// Returns a request without a pending operation or a completion.
pub(crate) fn silent(operation: Operation, payload: Payload<'_>) -> SendWorkRequest<'_> {
    SendWorkRequest { wr_id: NOBODY, operation, payload, flags: SendFlags::NONE }
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
