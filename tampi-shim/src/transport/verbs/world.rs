//! The ranks of a run, as they see each other in one process.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use ibverbs_sim::{
    CompletionChannel, CompletionQueue, Context, Device, ProtectionDomain, QueuePairInit,
    ReceiveWorkRequest, SharedReceiveQueue, SharedReceiveQueueInit, WorkCompletion,
};
use talpf_primitives::Mutex;
use talpf_runtime::Group;

use super::aftermath::Aftermath;
use super::cell::CELL;
use super::footprint::receives;
use super::front::CELLS;
use super::inbox::{Inbox, Incoming};
use super::link::{End, Link};
use super::outlet::{CHUNK, SEND_COMPLETIONS, SENDS};
use super::ring::{Ring, Told};
use super::sleeper::{Collecting, Sleeper};
use crate::config::Config;
use crate::error::Error;
use crate::protocols::Protocols;
use crate::rank::{Rank, WorldRank};
use crate::statistics::Statistics;

/// Bytes of the longest eager message: half a ring, so that two find room.
pub(crate) const LONGEST_EAGER: usize = CELLS / 2 * CELL;

/// Requests that a queue pair for long messages holds.
const BULK_SENDS: u32 = 64;

/// Looks for a cell before a task that waits asks again whether it may look on, which takes as long
/// as several. In a crowd others need the core.
const LOOKS: u32 = 16;
const LOOKS_IN_A_CROWD: u32 = 2;

/// All ranks of a run.
pub(super) struct World {
    ranks: Box<[RankState]>,
    /// Held while a link is made.
    connecting: Mutex<()>,
    /// Set before `failed`.
    failure: OnceLock<Error>,
    failed: AtomicBool,
    pub(super) has_timers: bool,
}

/// One rank, on lines of its own.
#[repr(align(128))]
pub(super) struct RankState {
    pub(super) group: Group,
    pub(super) context: Context,
    pub(super) domain: ProtectionDomain,
    pub(super) channel: CompletionChannel,
    /// What peers ring with.
    pub(super) arrived: CompletionQueue,
    bells: SharedReceiveQueue,
    pub(super) inbox: Mutex<Inbox>,
    /// Most pairs of ranks have none.
    links: Box<[OnceLock<Box<Link>>]>,
    pub(super) protocols: Protocols,
    pub(super) max_transfer: u64,
    /// Unmatched eager messages that each peer may have here, each as many as its cells, and how
    /// many are matched before the peer is told.
    pub(super) quota: usize,
    pub(super) quota_step: u64,
    /// Bytes of copies that sends are made from, and how many there may be.
    pub(super) kept: AtomicU64,
    pub(super) buffer_limit: u64,
    /// Links that collect short messages.
    collecting: Arc<Collecting>,
    /// Changes when a task of the rank looks or waits, or finds a message that it receives. Messages
    /// with that in between do not follow each other: whoever looks waits for an answer, or gives
    /// one, and what is collected would be late.
    turn: AtomicU32,
    /// How often [`RankState::look`] does.
    looks: u32,
    /// Messages and notices that wait for room in a ring.
    pub(super) staged: AtomicUsize,
    /// Sends that end when a peer says so.
    pub(super) pending: AtomicUsize,
    /// Long messages that are being moved.
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
        let count = groups.len();
        let quota = (config.unexpected_limit / (CELL * count)).max(1);
        let is_crowded = count > config.runtime.workers;
        let looks = if is_crowded { LOOKS_IN_A_CROWD } else { LOOKS };
        let of_rank = |group| {
            let context = device.open();
            let attributes = context.query_device();
            let domain = context.allocate_protection_domain();
            let channel = CompletionChannel::new();
            let receives = receives(count as u32);
            let arrived = context.create_completion_queue(2 * receives, Some(&channel))?;
            let init = SharedReceiveQueueInit { max_wr: 2 * receives, max_sge: 1 };
            let bells = domain.create_shared_receive_queue(&init)?;
            let receive = ReceiveWorkRequest { wr_id: 0, scatter: &[] };
            (0..receives)
                .try_for_each(|_| bells.post_receive(&[receive]))
                .map_err(|error| error.reason)?;
            Ok(RankState {
                group,
                domain,
                channel,
                arrived,
                bells,
                inbox: Mutex::default(),
                links: (0..count).map(|_| OnceLock::new()).collect(),
                protocols: protocols.clamped(),
                max_transfer: u64::from(attributes.max_message_size).min(1 << 30),
                quota,
                quota_step: (quota as u64 / 4).max(1),
                kept: AtomicU64::new(0),
                buffer_limit: config.buffer_limit as u64,
                collecting: Arc::default(),
                turn: AtomicU32::new(0),
                looks,
                staged: AtomicUsize::new(0),
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
            has_timers: config.device.fault.is_some(),
        }))
    }

    #[inline]
    pub(super) fn rank(&self, rank: WorldRank) -> &RankState {
        &self.ranks[rank.index()]
    }

    /// The link from one rank to another, made if there is none yet.
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
            // A bell of the peer is for the rings that are here when it is taken: none is taken
            // between the time when the peer can ring and that when its ring is here.
            let mut inbox = near.inbox.lock();
            let (near_end, near_ring) = near.open()?;
            if from == to {
                near_end.connect(&near_end)?;
                near.attach(&mut inbox, to, near_end, near_ring, None);
            } else {
                let (far_end, far_ring) = far.open()?;
                near_end.connect(&far_end)?;
                far_end.connect(&near_end)?;
                let far_side = (far_ring.remote(), far_end.told.remote());
                let near_side = (near_ring.remote(), near_end.told.remote());
                // Whoever finds the near link may send, and then the far side must be there.
                far.attach(&mut far.inbox.lock(), from, far_end, far_ring, Some(near_side));
                near.attach(&mut inbox, to, near_end, near_ring, Some(far_side));
            }
        }
        near.link(to).ok_or(Error::Abandoned)
    }

    /// Whether the run cannot go on.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Why, if so.
    pub(super) fn failure(&self) -> Option<Error> {
        if self.has_failed() { self.failure.get().cloned() } else { None }
    }

    /// The run cannot go on. The first failure is what everybody reports. To be called without any
    /// lock.
    #[cold]
    pub(super) fn fail(&self, error: Error) {
        let _ = self.failure.set(error);
        self.failed.store(true, Ordering::SeqCst);
        if let Some(error) = self.failure.get() {
            self.end_all(error);
        }
    }

    /// Ends everything that is under way with `error`.
    ///
    /// Whatever is started later sees that the run has failed: it looks under the lock that is
    /// taken here.
    pub(super) fn end_all(&self, error: &Error) {
        let mut after = Aftermath::default();
        for rank in &self.ranks {
            rank.inbox.lock().fail(error, &mut after);
            for link in rank.links() {
                link.transfers.lock().fail(rank, error, &mut after);
                link.sender.lock().fail(link, rank, error, &mut after);
            }
        }
        after.complete();
        drop(after.take());
        self.ranks.iter().for_each(|rank| rank.poller.wake());
    }
}

impl RankState {
    #[inline]
    pub(super) fn link(&self, to: WorldRank) -> Option<&Link> {
        self.links[to.index()].get().map(|link| &**link)
    }

    pub(super) fn links(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().filter_map(OnceLock::get).map(|link| &**link)
    }

    /// What this rank needs for one more peer.
    fn open(&self) -> Result<(End, Ring), Error> {
        let queue = |entries| self.context.create_completion_queue(entries, Some(&self.channel));
        let (control_sent, bulk_sent) = (queue(SEND_COMPLETIONS)?, queue(2 * BULK_SENDS)?);
        let init = QueuePairInit {
            srq: Some(self.bells.clone()),
            max_send_wr: SENDS,
            max_inline_data: CHUNK as u32,
            ..QueuePairInit::new(&control_sent, &self.arrived)
        };
        let control = self.domain.create_queue_pair(&init)?;
        let init =
            QueuePairInit { max_send_wr: BULK_SENDS, ..QueuePairInit::new(&bulk_sent, &bulk_sent) };
        let bulk = self.domain.create_queue_pair(&init)?;
        let told = Told::new(&self.domain)?;
        let ring = Ring::new(&self.domain)?;
        Ok((End { control, control_sent, bulk, bulk_sent, told }, ring))
    }

    /// Starts to use a link. `far` is where the peer's ring and line are; `None`: here.
    fn attach(
        &self,
        inbox: &mut Inbox,
        peer: WorldRank,
        end: End,
        ring: Ring,
        far: Option<(ibverbs_sim::RemoteAddress, ibverbs_sim::RemoteAddress)>,
    ) {
        let (far_ring, far_told) = far.unwrap_or((ring.remote(), end.told.remote()));
        let incoming = (peer, inbox.rings.len(), ring.share_front());
        let link = Link::new(incoming, &self.collecting, end, far_ring, far_told);
        if self.links[peer.index()].set(Box::new(link)).is_ok() {
            inbox.rings.push(Incoming { peer, ring });
        }
    }

    /// Looks whether a request that nobody waits for has failed.
    pub(super) fn check_links(&self) -> Result<(), Error> {
        self.links().try_for_each(Link::take_completions)
    }

    /// Has the channel told of whatever completes from now on.
    pub(super) fn arm(&self) -> Result<(), Error> {
        self.arrived.request_notify(false)?;
        self.links().try_for_each(Link::arm)
    }

    /// Takes the notices of peers that found this rank asleep: it is not.
    #[cold]
    pub(super) fn answer_bells(&self, inbox: &mut Inbox) -> Result<usize, Error> {
        let mut completions = [WorkCompletion::default(); 8];
        let count = self.arrived.poll(&mut completions);
        let receive = ReceiveWorkRequest { wr_id: 0, scatter: &[] };
        for _ in 0..count {
            self.bells.post_receive(&[receive]).map_err(|error| error.reason)?;
        }
        self.tell_asleep(inbox, false)?;
        Ok(count)
    }

    /// Tells the peers that do not know it yet whether this rank sleeps.
    pub(super) fn tell_asleep(&self, inbox: &mut Inbox, asleep: bool) -> Result<(), Error> {
        for Incoming { peer, ring } in &mut inbox.rings {
            if ring.asleep != asleep
                && let Some(link) = self.link(*peer)
            {
                ring.asleep = asleep;
                link.sender.lock().outlet.tell_asleep(link, asleep)?;
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn turn(&self) -> u32 {
        self.turn.load(Ordering::Relaxed)
    }

    /// A task looks or waits, or has got a message.
    #[inline]
    pub(super) fn next_turn(&self) {
        // Of two changes at once one is enough.
        self.turn.store(self.turn().wrapping_add(1), Ordering::Relaxed);
    }

    /// Whether short messages are collected.
    #[inline]
    pub(super) fn is_collecting(&self) -> bool {
        self.collecting.any()
    }

    /// Writes what was collected.
    #[cold]
    pub(super) fn write_collected(&self, after: &mut Aftermath) {
        for link in self.links().filter(|link| link.is_collecting()) {
            after.note(link.sender.lock().outlet.write_collected(link));
        }
    }

    /// Writes what was collected and has not changed since the last call.
    #[cold]
    pub(super) fn write_unchanged(&self, after: &mut Aftermath) {
        for link in self.links().filter(|link| link.is_collecting()) {
            // Who has the lock may be adding to it.
            if let Some(mut sender) = link.sender.try_lock() {
                after.note(sender.outlet.write_unchanged(link));
            }
        }
    }

    /// Looks for a cell to arrive, as long as a task may look before it asks again; not at all if
    /// something else is waited for.
    #[inline]
    pub(super) fn look(&self) {
        let staged = self.staged.load(Ordering::Relaxed);
        if staged + self.transfers.load(Ordering::Relaxed) > 0 {
            return;
        }
        for _ in 0..self.looks {
            if self.links().any(|link| link.front.has_arrived()) {
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// Whether nothing that this rank has to carry on is under way.
    pub(super) fn is_quiet(&self) -> bool {
        !self.is_collecting()
            && self.staged.load(Ordering::SeqCst) == 0
            && self.pending.load(Ordering::SeqCst) == 0
            && self.transfers.load(Ordering::SeqCst) == 0
    }

    /// Counts of everything so far, and of what is left.
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
        statistics.unfinished = (self.staged.load(Ordering::Relaxed)
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
