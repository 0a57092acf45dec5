//! The queues of one worker, as other workers see them.
#![allow(unsafe_code, reason = "makes ids of the indices that it has stored")]

use crossbeam_deque::Injector;
use crossbeam_utils::CachePadded;
use talpf_primitives::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::deques::Stealers;
use super::idle_set::PushMark;
use super::idleness::IdleWaiters;
use super::meter::Meter;

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
}

impl WorkerSlot {
    pub(crate) fn new(stealers: Stealers) -> CachePadded<Self> {
        let hot = HotCounters {
            next: NextSlot(AtomicU32::new(EMPTY)),
            pushes: PushMark::default(),
            steps: AtomicU64::new(0),
            spawns: AtomicU64::new(0),
            helps: [EMPTY, EMPTY].map(AtomicU32::new),
            catches_up: AtomicBool::new(false),
        };
        let idle_waiters = IdleWaiters::new();
        let (hot, meter) = (CachePadded::new(hot), CachePadded::new(Meter::new()));
        let thread = AtomicU32::new(0);
        CachePadded::new(WorkerSlot {
            stealers,
            affinity_queue: Injector::new(),
            idle_waiters,
            hot,
            thread,
            meter,
        })
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
}

const EMPTY: u32 = u32::MAX;

/// The task that a worker runs next. The worker puts tasks in and takes them out; other workers
/// take a task that has lain there for long.
pub(super) struct NextSlot(AtomicU32);

impl NextSlot {
    /// Puts a task in, and returns the task that was there.
    #[inline]
    pub(super) fn replace(&self, task: RecordId) -> Option<RecordId> {
        if self.0.load(Ordering::Relaxed) == EMPTY {
            self.0.store(task.index(), Ordering::Release);
            return None;
        }
        some(self.0.swap(task.index(), Ordering::AcqRel))
    }

    /// Puts a task in if the slot is empty, and returns it otherwise.
    #[inline]
    pub(super) fn put_if_empty(&self, task: RecordId) -> Option<RecordId> {
        if self.0.load(Ordering::Relaxed) != EMPTY {
            return Some(task);
        }
        self.0.store(task.index(), Ordering::Release);
        None
    }

    #[inline]
    pub(super) fn take(&self) -> Option<RecordId> {
        if self.0.load(Ordering::Relaxed) == EMPTY {
            return None;
        }
        some(self.0.swap(EMPTY, Ordering::AcqRel))
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<RecordId> {
        some(self.0.load(Ordering::Relaxed))
    }

    /// Takes `task` out if it is still there.
    pub(super) fn take_if(&self, task: RecordId) -> Option<RecordId> {
        let taken =
            self.0.compare_exchange(task.index(), EMPTY, Ordering::AcqRel, Ordering::Relaxed);
        taken.ok().and_then(some)
    }
}

/// Returns the task whose index was in a slot, if any.
fn some(bits: u32) -> Option<RecordId> {
    // SAFETY: besides `EMPTY`, a slot holds indices of ids only.
    (bits != EMPTY).then(|| unsafe { RecordId::new(bits) })
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// A slot, the data of each of two tasks, and the number of times each was taken.
    struct Model {
        next: NextSlot,
        work: [AtomicU32; 2],
        taken: [AtomicU32; 2],
    }

    impl Model {
        fn run(&self, task: RecordId) {
            let task = task.index() as usize;
            assert_eq!(
                self.work[task].load(Ordering::Relaxed),
                1,
                "its data is seen with the task"
            );
            self.taken[task].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Runs a worker that puts two tasks in and takes the rest, and thieves that take what they
    /// see.
    fn each_is_taken_once(put: fn(&NextSlot, RecordId) -> Option<RecordId>) {
        loom::model(move || {
            let model = Arc::new(Model {
                next: NextSlot(AtomicU32::new(EMPTY)),
                work: [AtomicU32::new(0), AtomicU32::new(0)],
                taken: [AtomicU32::new(0), AtomicU32::new(0)],
            });
            let thieves: Vec<_> = (0..2)
                .map(|_| {
                    let model = Arc::clone(&model);
                    thread::spawn(move || {
                        let seen = model.next.peek();
                        let task = seen.and_then(|task| model.next.take_if(task));
                        task.into_iter().for_each(|task| model.run(task));
                    })
                })
                .collect();
            for task in 0..2 {
                model.work[task].store(1, Ordering::Relaxed);
                let displaced = put(&model.next, RecordId::of_test(task as u32));
                displaced.into_iter().for_each(|task| model.run(task));
            }
            model.next.take().into_iter().for_each(|task| model.run(task));
            thieves.into_iter().for_each(|thief| thief.join().unwrap());
            assert!(model.taken.iter().all(|taken| taken.load(Ordering::Relaxed) == 1));
            assert_eq!(model.next.peek(), None);
        });
    }

    #[test]
    fn a_task_that_replaces_another_is_taken_once_and_so_is_that() {
        each_is_taken_once(NextSlot::replace);
    }

    #[test]
    fn a_task_put_into_an_empty_slot_is_taken_once() {
        each_is_taken_once(NextSlot::put_if_empty);
    }
}
