//! Processes that communicate, and what they share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use talpf_primitives::Mutex;

use crate::arrivals::Arrivals;
use crate::barrier::{Barrier, Patience};
use crate::error::Result;
use crate::message_queue::MessageQueue;
use crate::processors;
use crate::published::Published;
use crate::slot_table::SlotTable;

/// Part of a process that others read.
pub(crate) struct Member {
    /// Messages of even and of odd supersteps. The process queues into the one of the open superstep; others
    /// read it from the barrier at its end until they arrive at the barrier of the next.
    pub(crate) queues: [Published<MessageQueue>; 2],
    /// Global slots. The table is replaced between two barriers during which nobody reads it.
    pub(crate) globals: Published<SlotTable>,
    /// Number of messages that the queue has room for.
    limit: AtomicUsize,
    /// Histories of the register at the ends of even and of odd supersteps.
    histories: [AtomicU64; 2],
    /// Operations that were started at once.
    pub(crate) arrivals: Arrivals,
}

impl Member {
    fn new(processes: usize) -> Result<Self> {
        Ok(Member {
            queues: [
                Published::new(MessageQueue::new(processes)),
                Published::new(MessageQueue::new(processes)),
            ],
            globals: Published::new(SlotTable::new(0)?),
            limit: AtomicUsize::new(0),
            histories: [AtomicU64::new(0), AtomicU64::new(0)],
            arrivals: Arrivals::new(),
        })
    }

    /// Publishes the number of messages that the queue has room for, between two barriers.
    pub(crate) fn publish_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Publishes the history of the register, as a superstep ends.
    pub(crate) fn publish_history(&self, superstep: u64, history: u64) {
        self.histories[parity(superstep)].store(history, Ordering::Relaxed);
    }

    pub(crate) fn history(&self, superstep: u64) -> u64 {
        self.histories[parity(superstep)].load(Ordering::Relaxed)
    }
}

/// Returns which of two queues a superstep has.
#[inline]
pub(crate) fn parity(superstep: u64) -> usize {
    (superstep & 1) as usize
}

/// Processes that communicate.
pub(crate) struct Team {
    pub(crate) members: Box<[CachePadded<Member>]>,
    pub(crate) barrier: Barrier,
    pub(crate) patience: Patience,
    /// Number of processes that have left, or are about to.
    leaving: AtomicUsize,
    /// Team of a program in a fresh context, until all have joined it, and the number of those that have.
    fresh: Mutex<Option<(Arc<Team>, usize)>>,
}

impl Team {
    /// Makes a team.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`](crate::error::Error::OutOfMemory).
    pub(crate) fn new(processes: usize) -> Result<Arc<Self>> {
        let members = (0..processes).map(|_| Member::new(processes).map(CachePadded::new));
        Ok(Arc::new(Team {
            members: members.collect::<Result<_>>()?,
            barrier: Barrier::new(processes),
            patience: Patience::of(processes, processors::cores()),
            leaving: AtomicUsize::new(0),
            fresh: Mutex::new(None),
        }))
    }

    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.members.len()
    }

    /// Notes that a process leaves, so that no other waits for operations of processes that are gone.
    pub(crate) fn note_leaving(&self) {
        self.leaving.fetch_add(1, Ordering::SeqCst);
        self.members.iter().for_each(|member| member.arrivals.wake());
    }

    /// Returns `true` if all processes but one have left.
    pub(crate) fn is_deserted(&self) -> bool {
        self.leaving.load(Ordering::SeqCst) + 1 >= self.size()
    }

    /// Joins the team of a program in a fresh context, which the first process makes.
    pub(crate) fn join_fresh(&self) -> Result<Arc<Team>> {
        let mut fresh = self.fresh.lock();
        let (team, joined) = match fresh.take() {
            Some((team, joined)) => (team, joined + 1),
            None => (Team::new(self.size())?, 1),
        };
        if joined < self.size() {
            *fresh = Some((Arc::clone(&team), joined));
        }
        Ok(team)
    }
}
