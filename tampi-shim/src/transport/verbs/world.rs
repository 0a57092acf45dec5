//! State of all ranks of a run in one process.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use ibverbs_sim::{
    CompletionChannel, CompletionQueue, Context, Device, ProtectionDomain, QueuePairInit,
    ReceiveWorkRequest, SharedReceiveQueue, SharedReceiveQueueInit, WorkCompletion,
};
use talpf_primitives::Mutex;
use talpf_runtime::Group;
use talpf_runtime::service::Sleeper;

use super::cell::CELL;
use super::deferred::DeferredActions;
use super::footprint::receives;
use super::inbox::{Inbox, Incoming};
use super::link::{Link, LinkEnd};
use super::ring::{Ring, StatusLine};
use super::ring_buffer::CELLS;
use super::ring_writer::{CHUNK, SEND_COMPLETIONS, SENDS};
use super::sleep::BatchingLinks;
use crate::config::Config;
use crate::control_plane;
use crate::error::Error;
use crate::protocols::Protocols;
use crate::rank::{Rank, WorldRank};
use crate::statistics::Statistics;

/// Length of the longest eager message in bytes: half a ring, so that two fit.
pub(crate) const LONGEST_EAGER: usize = CELLS / 2 * CELL;

/// Requests that a queue pair for long messages holds.
const BULK_SENDS: u32 = 64;

/// Polls for a cell before a task that waits asks again whether it may spin, which takes as long as
/// several polls.
const SPINS: u32 = 16;
/// The same with more ranks than workers, where other ranks need the core.
const SPINS_OVERSUBSCRIBED: u32 = 2;

/// All ranks of a run.
pub(super) struct World {
    ranks: Box<[RankState]>,
    /// Held while a link is created.
    connecting: Mutex<()>,
    /// Failure of the run, set before `failed`.
    failure: OnceLock<Error>,
    failed: AtomicBool,
    /// `true` if the link has timers: for lost packets, or for messages that it holds in real time.
    pub(super) has_timers: bool,
    /// `true` if what is posted arrives later, when a link model says.
    pub(super) is_distant: bool,
    /// `true` if there are more ranks than workers.
    pub(super) is_oversubscribed: bool,
    pub(super) device: Device,
}

/// State of one rank, on cache lines of its own.
#[repr(align(128))]
pub(super) struct RankState {
    pub(super) group: Group,
    pub(super) context: Context,
    pub(super) domain: ProtectionDomain,
    pub(super) channel: CompletionChannel,
    /// Completions of the doorbells that peers have rung.
    pub(super) arrived: CompletionQueue,
    doorbells: SharedReceiveQueue,
    pub(super) inbox: Mutex<Inbox>,
    /// Links by peer. Most pairs of ranks have none.
    links: Box<[OnceLock<Box<Link>>]>,
    /// Peers with a link, in the order in which the links were created: a walk over all links does
    /// not depend on the number of ranks.
    linked: Box<[OnceLock<WorldRank>]>,
    pub(super) protocols: Protocols,
    pub(super) max_transfer: u64,
    /// Limit of the unmatched eager messages of each peer, counted in cells.
    pub(super) quota: usize,
    /// Number of messages released before they are reported to the peer.
    pub(super) quota_step: u64,
    /// Bytes of the copies that sends are made from.
    pub(super) kept: AtomicU64,
    /// Limit of `kept`.
    pub(super) buffer_limit: u64,
    /// Number of links that have a batch.
    batching: Arc<BatchingLinks>,
    /// Number of the burst of short sends. A burst ends when a task of the rank polls or waits, or
    /// receives a message: the task waits for an answer, or gives one, and a batched message would
    /// be late.
    burst: AtomicU32,
    /// Polls of [`RankState::spin_for_cell`].
    spins: u32,
    /// Length of all retry queues.
    pub(super) queued: AtomicUsize,
    /// Number of sends that end with a FIN of a peer.
    pub(super) pending: AtomicUsize,
    /// Number of transfers under way.
    pub(super) transfers: AtomicUsize,
    pub(super) stop: AtomicBool,
    pub(super) poller: Sleeper,
}

impl World {
    pub(super) fn new(
        config: &Config,
        protocols: Protocols,
        groups: Vec<Group>,
    ) -> Result<Arc<Self>, Error> {
        let device = Device::new(config.device.clone())?;
        let has_link_in_real_time =
            config.device.link.is_some() && config.runtime.virtual_time.is_none();
        if let (true, Some(first)) = (has_link_in_real_time, groups.first()) {
            let clock = first.clock().clone();
            device.set_link_clock(move || clock.now_ns());
        }
        let count = groups.len();
        let quota = (config.unexpected_limit / (CELL * count)).max(1);
        let is_oversubscribed = count > config.runtime.workers;
        let spins = if is_oversubscribed { SPINS_OVERSUBSCRIBED } else { SPINS };
        let of_rank = |group| {
            let context = device.open();
            let attributes = context.query_device();
            let domain = context.allocate_protection_domain();
            let channel = CompletionChannel::new();
            let receives = receives(count as u32);
            let arrived = context.create_completion_queue(2 * receives, Some(&channel))?;
            let init = SharedReceiveQueueInit { max_wr: 2 * receives, max_sge: 1 };
            let doorbells = domain.create_shared_receive_queue(&init)?;
            let receive = ReceiveWorkRequest { wr_id: 0, scatter: &[] };
            doorbells
                .post_receive(&vec![receive; receives as usize])
                .map_err(|error| error.reason)?;
            Ok(RankState {
                group,
                domain,
                channel,
                arrived,
                doorbells,
                inbox: Mutex::default(),
                links: (0..count).map(|_| OnceLock::new()).collect(),
                linked: (0..count).map(|_| OnceLock::new()).collect(),
                protocols: protocols.clamped(),
                max_transfer: u64::from(attributes.max_message_size).min(1 << 30),
                quota,
                quota_step: (quota as u64 / 4).max(1),
                kept: AtomicU64::new(0),
                buffer_limit: config.buffer_limit as u64,
                batching: Arc::default(),
                burst: AtomicU32::new(0),
                spins,
                queued: AtomicUsize::new(0),
                pending: AtomicUsize::new(0),
                transfers: AtomicUsize::new(0),
                stop: AtomicBool::new(false),
                poller: Sleeper::default(),
                context,
            })
        };
        let ranks = groups.into_iter().map(of_rank).collect::<Result<_, Error>>()?;
        Ok(Arc::new(World {
            ranks,
            connecting: Mutex::new(()),
            failure: OnceLock::new(),
            failed: AtomicBool::new(false),
            has_timers: config.device.fault.is_some() || has_link_in_real_time,
            is_oversubscribed,
            is_distant: config.device.link.is_some(),
            device,
        }))
    }

    #[inline]
    pub(super) fn rank(&self, rank: WorldRank) -> &RankState {
        &self.ranks[rank.index()]
    }

    /// Wakes the polling task of the rank of a context, to which something has come.
    pub(super) fn wake_poller(&self, context: u32) {
        if let Some(rank) = self.ranks.get(context as usize) {
            rank.poller.wake();
        }
    }

    /// Returns the link from one rank to another, and creates it if there is none yet.
    ///
    /// **Errors**: those of the device.
    #[inline]
    pub(super) fn link(&self, from: WorldRank, to: WorldRank) -> Result<&Link, Error> {
        match self.rank(from).link(to) {
            Some(link) => Ok(link),
            None => self.connect(from, to),
        }
    }

    #[cold]
    fn connect(&self, from: WorldRank, to: WorldRank) -> Result<&Link, Error> {
        let _connecting = self.connecting.lock();
        let (near, far) = (self.rank(from), self.rank(to));
        if near.link(to).is_none() {
            // A doorbell stands for the rings that exist here when it is taken: none may be taken
            // between the time when the peer can ring and the time when its ring exists here.
            let mut inbox = near.inbox.lock();
            let (near_end, near_ring) = near.open()?;
            if from == to {
                near_end.connect(&near_end)?;
                near.attach(&mut inbox, to, near_end, near_ring, None);
            } else {
                let (far_end, far_ring) = far.open()?;
                near_end.connect(&far_end)?;
                far_end.connect(&near_end)?;
                let far_side = (far_ring.remote(), far_end.status_line.remote());
                let near_side = (near_ring.remote(), near_end.status_line.remote());
                // A thread that finds the near link may send at once: the far side must exist
                // first.
                far.attach(&mut far.inbox.lock(), from, far_end, far_ring, Some(near_side));
                near.attach(&mut inbox, to, near_end, near_ring, Some(far_side));
            }
        }
        near.link(to).ok_or(Error::Abandoned)
    }

    /// Returns `true` once the run has failed.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Returns the failure of the run, if it has failed.
    pub(super) fn failure(&self) -> Option<Error> {
        if self.has_failed() { self.failure.get().cloned() } else { None }
    }

    /// Fails the run. All ranks report the first failure. To be called without any lock.
    #[cold]
    pub(super) fn fail(&self, error: Error) {
        if self.failure.set(error.clone()).is_ok() {
            control_plane::fails(&error);
        }
        self.failed.store(true, Ordering::SeqCst);
        if let Some(error) = self.failure.get() {
            self.end_all(error);
        }
    }

    /// Ends all operations under way with `error`.
    ///
    /// An operation that starts later sees that the run has failed: it checks under one of the
    /// locks that are taken here.
    pub(super) fn end_all(&self, error: &Error) {
        let mut deferred = DeferredActions::default();
        for rank in &self.ranks {
            rank.inbox.lock().fail(error, &mut deferred);
            for link in rank.links() {
                link.transfers.lock().fail(rank, error, &mut deferred);
                link.sender.lock().fail(link, rank, error, &mut deferred);
            }
        }
        deferred.notify_waiters();
        drop(deferred.take());
        self.ranks.iter().for_each(|rank| rank.poller.wake());
    }
}

impl RankState {
    #[inline]
    pub(super) fn link(&self, to: WorldRank) -> Option<&Link> {
        self.links[to.index()].get().map(|link| &**link)
    }

    pub(super) fn links(&self) -> impl Iterator<Item = &Link> {
        let linked = self.linked.iter().map_while(OnceLock::get);
        linked.filter_map(|peer| self.link(*peer))
    }

    /// Creates the queue pairs and the ring for one more peer.
    fn open(&self) -> Result<(LinkEnd, Ring), Error> {
        let queue = |entries| self.context.create_completion_queue(entries, Some(&self.channel));
        let (control_sent, bulk_sent) = (queue(SEND_COMPLETIONS)?, queue(2 * BULK_SENDS)?);
        let init = QueuePairInit {
            srq: Some(self.doorbells.clone()),
            max_send_wr: SENDS,
            max_inline_data: CHUNK as u32,
            ..QueuePairInit::new(&control_sent, &self.arrived)
        };
        let control = self.domain.create_queue_pair(&init)?;
        let init =
            QueuePairInit { max_send_wr: BULK_SENDS, ..QueuePairInit::new(&bulk_sent, &bulk_sent) };
        let bulk = self.domain.create_queue_pair(&init)?;
        let status_line = StatusLine::new(&self.domain)?;
        let ring = Ring::new(&self.domain)?;
        Ok((LinkEnd { control, control_sent, bulk, bulk_sent, status_line }, ring))
    }

    /// Adds a link. `far` names the ring and the status line at the peer, or is `None` if the peer
    /// is this rank.
    fn attach(
        &self,
        inbox: &mut Inbox,
        peer: WorldRank,
        end: LinkEnd,
        ring: Ring,
        far: Option<(ibverbs_sim::RemoteAddress, ibverbs_sim::RemoteAddress)>,
    ) {
        let (far_ring, far_status) = far.unwrap_or((ring.remote(), end.status_line.remote()));
        let incoming = (peer, inbox.rings.len(), ring.share_buffer());
        let link = Link::new(incoming, &self.batching, end, far_ring, far_status);
        if self.links[peer.index()].set(Box::new(link)).is_ok() {
            let _ = self.linked[inbox.rings.len()].set(peer);
            inbox.rings.push(Incoming { peer, ring });
        }
    }

    /// Checks for failed requests that nobody waits for.
    pub(super) fn check_links(&self) -> Result<(), Error> {
        self.links().try_for_each(Link::take_completions)
    }

    /// Arms the channel for all completions from now on.
    pub(super) fn arm(&self) -> Result<(), Error> {
        self.arrived.request_notify(false)?;
        self.links().try_for_each(Link::arm)
    }

    /// Takes the doorbells of peers that found this rank asleep, and reports to all peers that it
    /// is awake.
    #[cold]
    pub(super) fn answer_doorbells(&self, inbox: &mut Inbox) -> Result<usize, Error> {
        let mut completions = [WorkCompletion::default(); 8];
        let count = self.arrived.poll(&mut completions);
        let receive = ReceiveWorkRequest { wr_id: 0, scatter: &[] };
        for _ in 0..count {
            self.doorbells.post_receive(&[receive]).map_err(|error| error.reason)?;
        }
        self.report_asleep(inbox, false)?;
        Ok(count)
    }

    /// Reports to the peers that do not know it yet whether this rank sleeps.
    pub(super) fn report_asleep(&self, inbox: &mut Inbox, asleep: bool) -> Result<(), Error> {
        for Incoming { peer, ring } in &mut inbox.rings {
            if ring.asleep != asleep
                && let Some(link) = self.link(*peer)
            {
                ring.asleep = asleep;
                link.sender.lock().writer.report_asleep(link, asleep)?;
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn burst(&self) -> u32 {
        self.burst.load(Ordering::Relaxed)
    }

    /// Ends the burst: a task polls or waits, or has received a message.
    #[inline]
    pub(super) fn end_burst(&self) {
        // Of two changes at one time one may be lost.
        self.burst.store(self.burst().wrapping_add(1), Ordering::Relaxed);
    }

    /// Returns `true` if a link has a batch.
    #[inline]
    pub(super) fn is_batching(&self) -> bool {
        self.batching.any()
    }

    /// Writes the batches of all links.
    #[cold]
    pub(super) fn write_batch(&self, deferred: &mut DeferredActions) {
        for link in self.links().filter(|link| link.is_batching()) {
            deferred.note(link.sender.lock().writer.write_batch(link));
        }
    }

    /// Writes the batches to which no message was added since the last call.
    #[cold]
    pub(super) fn write_idle_batch(&self, deferred: &mut DeferredActions) {
        for link in self.links().filter(|link| link.is_batching()) {
            // The holder of the lock may be adding a message.
            if let Some(mut sender) = link.sender.try_lock() {
                deferred.note(sender.writer.write_idle_batch(link));
            }
        }
    }

    /// Polls until a cell arrives, for as long as a task may before it asks again; not at all while
    /// transfers or the retry queues have to be polled instead.
    #[inline]
    pub(super) fn spin_for_cell(&self) {
        let queued = self.queued.load(Ordering::Relaxed);
        if queued + self.transfers.load(Ordering::Relaxed) > 0 {
            return;
        }
        for _ in 0..self.spins {
            if self.links().any(|link| link.ring_buffer.has_arrived()) {
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// Returns `true` if no operation of this rank is under way that needs progress.
    pub(super) fn is_quiet(&self) -> bool {
        !self.is_batching()
            && self.queued.load(Ordering::SeqCst) == 0
            && self.pending.load(Ordering::SeqCst) == 0
            && self.transfers.load(Ordering::SeqCst) == 0
    }

    /// Returns the counters so far, and the number of operations that are left.
    pub(super) fn statistics(&self) -> Statistics {
        let inbox = self.inbox.lock();
        let (receives, messages) = inbox.matcher.waiting();
        let mut statistics = inbox.statistics;
        statistics.waiting_receives = receives as u64;
        statistics.waiting_messages = (messages + inbox.taken.len()) as u64;
        let filling = inbox.filling.len();
        drop(inbox);
        for link in self.links() {
            statistics.add(&link.sender.lock().statistics);
        }
        statistics.unfinished = (self.queued.load(Ordering::Relaxed)
            + self.pending.load(Ordering::Relaxed)
            + self.transfers.load(Ordering::Relaxed)
            + filling) as u64;
        statistics.kept_bytes = self.kept.load(Ordering::Relaxed);
        statistics
    }
}

impl From<WorldRank> for Rank {
    fn from(rank: WorldRank) -> Self {
        Rank(rank.0)
    }
}
