//! The queues of one worker, as other workers see them.

use crossbeam_deque::Injector;
use crossbeam_utils::CachePadded;
use talpf_primitives::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::idle_set::PushMark;
use super::idleness::IdleWaiters;
use super::meter::Meter;
use super::policy::depth_first::{Deques, Stealers};
use super::policy::next_slot::{EMPTY, NextSlot, some};
use crate::record::RecordId;

/// The state of a worker that all threads see.
pub(crate) struct WorkerSlot {
    pub(super) stealers: Stealers,
    /// Tasks that other threads have made ready for this worker.
    pub(super) affinity_queue: Injector<RecordId>,
    pub(super) idle_waiters: IdleWaiters,
    /// On a cache line apart from the queues, which idle workers poll all the time.
    pub(super) hot: CachePadded<HotCounters>,
    /// System identifier of the worker's thread; 0 before it has begun.
    pub(super) thread: AtomicU32,
    /// Number of the group of the last slice of a traced worker. Written by the worker only.
    pub(super) traced_group: AtomicU32,
    /// Written by the worker only.
    pub(super) meter: CachePadded<Meter>,
}

/// State that a worker changes with every task and other workers read.
pub(super) struct HotCounters {
    pub(super) next: NextSlot,
    pub(super) pushes: PushMark,
    /// Odd while the worker is in a task that counts as progress. Written by the worker only.
    pub(super) steps: AtomicU64,
    /// Spawns on this worker. Written by the worker only.
    pub(super) spawns: AtomicU64,
    /// While the worker runs a task inside a spawn: the task that spawns and the task that runs.
    /// `EMPTY` twice otherwise. Written by the worker only.
    pub(super) helps: [AtomicU32; 2],
    /// `true` while the worker's task only waits for tasks of other workers. Written by the worker
    /// only.
    pub(super) catches_up: AtomicBool,
}

impl HotCounters {
    /// Notes a task that runs inside a spawn of another, or `None` twice once there is no such
    /// task.
    pub(super) fn note_help(&self, spawner: Option<RecordId>, task: Option<RecordId>) {
        for (noted, task) in self.helps.iter().zip([spawner, task]) {
            noted.store(task.map_or(EMPTY, RecordId::index), Ordering::Relaxed);
        }
    }

    /// Returns the task that spawns and the task that runs inside the spawn, if there are such.
    pub(super) fn help(&self) -> Option<[RecordId; 2]> {
        let [spawner, task] =
            self.helps.each_ref().map(|noted| some(noted.load(Ordering::Relaxed)));
        Some([spawner?, task?])
    }

    /// Returns `true` if the worker is in a task that counts as progress.
    #[inline]
    pub(super) fn is_in_task(&self) -> bool {
        self.steps.load(Ordering::Relaxed) % 2 == 1
    }

    /// Returns `true` if the worker is in such a task, which does not only wait for other workers.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        self.is_in_task() && !self.catches_up.load(Ordering::Relaxed)
    }
}

impl WorkerSlot {
    pub(crate) fn new(stealers: Stealers) -> CachePadded<Self> {
        let hot = HotCounters {
            next: NextSlot::new(),
            pushes: PushMark::default(),
            steps: AtomicU64::new(0),
            spawns: AtomicU64::new(0),
            helps: [EMPTY, EMPTY].map(AtomicU32::new),
            catches_up: AtomicBool::new(false),
        };
        let idle_waiters = IdleWaiters::new();
        let (hot, meter) = (CachePadded::new(hot), CachePadded::new(Meter::new()));
        let (thread, traced_group) = (AtomicU32::new(0), AtomicU32::new(u32::MAX));
        CachePadded::new(WorkerSlot {
            stealers,
            affinity_queue: Injector::new(),
            idle_waiters,
            hot,
            thread,
            traced_group,
            meter,
        })
    }

    /// Counts the tasks that are ready here. A snapshot.
    pub(super) fn queued(&self) -> usize {
        let next = usize::from(self.hot.next.peek().is_some());
        next + self.stealers.len() + self.affinity_queue.len()
    }

    /// Returns `true` if a worker that is about to park would find something here.
    pub(super) fn has_work(&self) -> bool {
        self.hot.pushes.touch();
        self.has_ready() || !self.idle_waiters.is_empty()
    }

    /// Returns `true` if a task is ready here that another worker may run.
    pub(super) fn has_ready(&self) -> bool {
        !self.stealers.is_empty() || !self.affinity_queue.is_empty()
    }

    /// Returns `true` if a task is ready here for the worker, whose deques are `deques`: without the fences that
    /// the view of other workers needs.
    #[inline]
    pub(super) fn has_own_ready(&self, deques: &Deques) -> bool {
        self.hot.next.peek().is_some() || !deques.is_empty() || !self.affinity_queue.is_empty()
    }
}
