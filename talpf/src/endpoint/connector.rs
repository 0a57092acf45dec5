//! Queue pairs between the ranks of a process, made with their first request.
//!
//! A run of `n` ranks could have `n * n` queue pairs; programs use few of them. So a rank has a cell
//! for every other rank, empty at first. The thread that posts the first request from one rank to
//! another makes both ends of their connection under a lock of the run, connects them, and fills
//! both cells. A cell is filled once, with a queue pair that is connected, and stays until the end
//! of the run: later posts take two loads and no lock. If that fails, nothing is filled, and
//! the post fails.
//!
//! A thread that finds a cell filled may send at once, while the other cell is still empty. So before
//! either is filled, both ends are connected, and the ranks of both queue pairs are known: a request never
//! comes to a rank that does not respond yet, nor is an arrival of a rank that is not known. The lock is
//! held while nothing but the device is called.
//!
//! Ranks of other processes are connected by a handshake; their queue pairs are made at the start.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use ibverbs_sim::{
    CompletionChannel, CompletionQueue, Connection, Context, Device, ProtectionDomain, QueuePair,
    QueuePairInit, Result, SharedReceiveQueue, SharedReceiveQueueInit,
};
use talpf_primitives::{Mutex, OnceLock};

use super::capacity::{inline_bytes, receives, sends};
use super::peer_ranks::PeerRanks;
use super::send_completions::SendCompletions;
use crate::by_rank::ByRank;
use crate::numbers::Rank;

/// A queue pair to one peer. On cache lines of its own, as its rank changes it with every request.
#[repr(align(128))]
pub(super) struct Connected {
    pub(super) queue_pair: QueuePair,
    /// Number of requests without a pending operation, wrapping.
    pub(super) unsignalled: AtomicU32,
    /// `true` once connected to another process.
    pub(super) is_remote: AtomicBool,
}

/// The queue pairs of a rank, by peer.
pub(super) type Cells = Arc<ByRank<OnceLock<Box<Connected>>>>;

/// A rank's end of connections, and the objects that one more needs.
pub(super) struct End {
    pub(super) cells: Cells,
    /// Number of filled cells. Changed under the lock of the connector.
    filled: AtomicU32,
    pub(super) context: Context,
    pub(super) domain: ProtectionDomain,
    pub(super) channel: CompletionChannel,
    pub(super) sent: Arc<SendCompletions>,
    pub(super) arrived: CompletionQueue,
    pub(super) receives: SharedReceiveQueue,
    /// Capacity of each send queue.
    sends: u32,
    /// Most bytes of a payload that is copied as it is posted.
    pub(super) inline_bytes: u32,
}

/// Maker of the connections between the ranks of a run in this process.
pub(super) struct Connector {
    /// The first of these ranks.
    first: u32,
    ends: Box<[End]>,
    connecting: Mutex<()>,
    pub(super) ranks: PeerRanks,
}

impl Connector {
    /// Makes the connector of `ends`, those of consecutive ranks from `first` on.
    pub(super) fn new(first: u32, ends: Box<[End]>) -> Self {
        Connector { first, ends, connecting: Mutex::new(()), ranks: PeerRanks::new() }
    }

    /// Returns the end of a rank of this process.
    pub(super) fn end(&self, rank: Rank) -> &End {
        &self.ends[(rank.0 - self.first) as usize]
    }

    /// Returns the queue pair from `near` to `far`, both of this process, and makes their connection
    /// if no other thread has.
    ///
    /// **Errors**: a limit of the device is exceeded.
    #[cold]
    pub(super) fn connect(&self, near: Rank, far: Rank) -> Result<&Connected> {
        let _connecting = self.connecting.lock();
        let [near_end, far_end] = [near, far].map(|rank| self.end(rank));
        if let Some(connected) = near_end.cells.of(far).get() {
            return Ok(connected);
        }
        let there = if near == far { None } else { Some(far_end.open()?) };
        let here = near_end.open()?;
        let connection = Connection::default();
        here.connect(there.as_ref().unwrap_or(&here).number(), &connection)?;
        self.ranks.set(here.number(), far);
        if let Some(there) = there {
            there.connect(here.number(), &connection)?;
            self.ranks.set(there.number(), near);
            far_end.fill(near, there);
        }
        Ok(near_end.fill(far, here))
    }

    /// Makes queue pairs from a rank to those of other processes, which will be connected later.
    ///
    /// **Errors**: a limit of the device is exceeded.
    pub(super) fn open_remote(&self, near: Rank) -> Result<()> {
        let _connecting = self.connecting.lock();
        let end = self.end(near);
        let here = self.first..self.first + self.ends.len() as u32;
        for rank in (0..end.cells.ranks()).filter(|rank| !here.contains(rank)) {
            let queue_pair = end.open()?;
            self.ranks.set(queue_pair.number(), Rank(rank));
            end.fill(Rank(rank), queue_pair);
        }
        Ok(())
    }
}

impl End {
    /// Makes the objects of a rank among `ranks`, of which `here` are in this process.
    pub(super) fn new(device: &Device, here: u32, ranks: u32) -> Result<Self> {
        let context = device.open();
        let channel = CompletionChannel::new();
        let sends = sends(ranks);
        let sent = Arc::new(SendCompletions::new(&context, &channel, ranks, sends));
        let arrived = context.create_completion_queue(2 * receives(here), Some(&channel))?;
        let domain = context.allocate_protection_domain();
        let init = SharedReceiveQueueInit {
            // Twice the room: a slot is free a moment after its receive was taken.
            max_wr: 2 * receives(here),
            max_sge: 1,
        };
        let receives = domain.create_shared_receive_queue(&init)?;
        let cells = Arc::new(ByRank::new(ranks));
        let filled = AtomicU32::new(0);
        let inline_bytes = inline_bytes(here, ranks, context.query_device().max_inline_data);
        Ok(End {
            cells,
            filled,
            context,
            domain,
            channel,
            sent,
            arrived,
            receives,
            sends,
            inline_bytes,
        })
    }

    /// Makes a queue pair, not connected yet.
    fn open(&self) -> Result<QueuePair> {
        let sent = self.sent.of(self.filled.load(Ordering::Relaxed))?;
        self.domain.create_queue_pair(&QueuePairInit {
            srq: Some(self.receives.clone()),
            max_send_wr: self.sends,
            max_send_sge: self.context.query_device().max_sge,
            max_inline_data: self.inline_bytes,
            ..QueuePairInit::new(sent, &self.arrived)
        })
    }

    /// Fills the cell of a peer, from which all threads post.
    fn fill(&self, peer: Rank, queue_pair: QueuePair) -> &Connected {
        self.filled.fetch_add(1, Ordering::Relaxed);
        self.cells.of(peer).get_or_init(|| {
            let (unsignalled, is_remote) = (AtomicU32::new(0), AtomicBool::new(false));
            Box::new(Connected { queue_pair, unsignalled, is_remote })
        })
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use std::sync::atomic::AtomicUsize;

    use ibverbs_sim::{
        DeviceConfig, Operation, Payload, ReceiveWorkRequest, SendFlags, SendWorkRequest,
        WorkCompletion,
    };
    use loom::thread;

    use super::*;

    /// The queues of a rank among so many are as short as they get.
    const RANKS: u32 = 128;
    const NEAR: Rank = Rank(0);
    const FAR: Rank = Rank(1);

    /// Sends over the far end of the connection, if that is there. Returns `true` if it was.
    fn send_from_far(connector: &Connector) -> bool {
        let Some(to) = connector.end(FAR).cells.get(NEAR).and_then(OnceLock::get) else {
            return false;
        };
        let operation = Operation::SendWithImmediate { immediate: 0 };
        let (wr_id, payload, flags) = (0, Payload::Inline(&[]), SendFlags::NONE);
        to.queue_pair
            .post_send(&[SendWorkRequest { wr_id, operation, payload, flags }])
            .expect("the queue pair is connected");
        let mut arrived = [WorkCompletion::default()];
        assert_eq!(connector.end(NEAR).arrived.poll(&mut arrived), 1);
        assert_eq!(connector.ranks.get(arrived[0].queue_pair), Some(FAR));
        true
    }

    #[test]
    fn loom_a_message_of_a_peer_that_finds_its_end_of_a_new_connection_is_of_a_known_rank() {
        static SENT_EARLY: AtomicUsize = AtomicUsize::new(0);
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(1);
        model.max_branches = 100_000;
        model.check(|| {
            let device = Device::new(DeviceConfig::default()).unwrap();
            let ends = (0..2).map(|_| End::new(&device, RANKS, RANKS).unwrap()).collect();
            let connector = Arc::new(Connector::new(0, ends));
            let receive = ReceiveWorkRequest { wr_id: 0, scatter: &[] };
            connector.end(NEAR).receives.post_receive(&[receive]).unwrap();
            let peer = {
                let connector = Arc::clone(&connector);
                thread::spawn(move || {
                    let is_sent = send_from_far(&connector);
                    let near = connector.end(NEAR).cells.get(FAR);
                    let is_early = near.and_then(OnceLock::get).is_none();
                    SENT_EARLY.fetch_add(usize::from(is_sent && is_early), Ordering::Relaxed);
                })
            };
            connector.connect(NEAR, FAR).unwrap();
            peer.join().unwrap();
        });
        assert!(SENT_EARLY.load(Ordering::Relaxed) > 0, "none before the near end was there");
    }
}
