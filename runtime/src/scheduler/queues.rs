//! The queues of one worker, as the others see them.
#![allow(unsafe_code, reason = "makes ids of the indices that it has stored")]

use crossbeam_deque::Injector;
use crossbeam_utils::CachePadded;
use talpf_primitives::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::deques::Stealers;
use super::idle_set::PushMark;
use super::idleness::IdleWaiters;
use super::meter::Meter;

use crate::task::RecordId;

/// The shared side of a worker.
pub(crate) struct Seat {
    pub(super) stealers: Stealers,
    /// Tasks at home here that others have made ready.
    pub(super) mail: Injector<RecordId>,
    pub(super) idle_waiters: IdleWaiters,
    /// Apart from the rest, which idle workers look at all the time.
    pub(super) pulse: CachePadded<Pulse>,
    /// The thread of the worker, as the system calls it; 0 before it has begun.
    pub(super) thread: AtomicU32,
    /// Written by the worker only.
    pub(super) meter: CachePadded<Meter>,
}

/// What a worker changes with every task.
pub(super) struct Pulse {
    pub(super) next: NextSlot,
    pub(super) pushes: PushMark,
    /// Odd while the worker is in a task that counts as progress. Written by the worker only.
    pub(super) steps: AtomicU64,
    /// Spawns on this worker. Written by the worker only.
    pub(super) spawns: AtomicU64,
    /// The tasks of the spawn inside which the worker runs others, and of the last of those; `EMPTY`
    /// twice while it does not. Written by the worker only.
    pub(super) helps: [AtomicU32; 2],
    /// Whether the task only waits for those of other workers. Written by the worker only.
    pub(super) catches_up: AtomicBool,
}

impl Pulse {
    /// Notes a task that runs inside a spawn of another, or that none does any more.
    pub(super) fn note_help(&self, spawner: Option<RecordId>, task: Option<RecordId>) {
        for (noted, task) in self.helps.iter().zip([spawner, task]) {
            noted.store(task.map_or(EMPTY, RecordId::index), Ordering::Relaxed);
        }
    }

    /// The task that spawns and the one that runs inside the spawn.
    pub(super) fn help(&self) -> Option<[RecordId; 2]> {
        let [spawner, task] =
            self.helps.each_ref().map(|noted| some(noted.load(Ordering::Relaxed)));
        Some([spawner?, task?])
    }

    /// Whether the worker is in a task that counts as progress.
    #[inline]
    pub(super) fn is_in_task(&self) -> bool {
        self.steps.load(Ordering::Relaxed) % 2 == 1
    }
}

impl Seat {
    pub(crate) fn new(stealers: Stealers) -> CachePadded<Self> {
        let pulse = Pulse {
            next: NextSlot(AtomicU32::new(EMPTY)),
            pushes: PushMark::default(),
            steps: AtomicU64::new(0),
            spawns: AtomicU64::new(0),
            helps: [EMPTY, EMPTY].map(AtomicU32::new),
            catches_up: AtomicBool::new(false),
        };
        let idle_waiters = IdleWaiters::new();
        let (pulse, meter) = (CachePadded::new(pulse), CachePadded::new(Meter::new()));
        let thread = AtomicU32::new(0);
        CachePadded::new(Seat {
            stealers,
            mail: Injector::new(),
            idle_waiters,
            pulse,
            thread,
            meter,
        })
    }

    /// Whether a worker that is about to park would find something here.
    pub(super) fn has_work(&self) -> bool {
        self.pulse.pushes.touch();
        self.has_ready() || !self.idle_waiters.is_empty()
    }

    /// Whether a task is ready here that another worker may run.
    pub(super) fn has_ready(&self) -> bool {
        !self.stealers.is_empty() || !self.mail.is_empty()
    }
}

const EMPTY: u32 = u32::MAX;

/// The task a worker runs next. The worker puts and takes; others take what has lain for long.
pub(super) struct NextSlot(AtomicU32);

impl NextSlot {
    /// Puts a task in, and hands back the one that was there.
    #[inline]
    pub(super) fn replace(&self, task: RecordId) -> Option<RecordId> {
        if self.0.load(Ordering::Relaxed) == EMPTY {
            self.0.store(task.index(), Ordering::Release);
            return None;
        }
        some(self.0.swap(task.index(), Ordering::AcqRel))
    }

    /// Puts a task in if there is none, and hands it back if there is.
    #[inline]
    pub(super) fn offer(&self, task: RecordId) -> Option<RecordId> {
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

    /// Takes `task` if it is still there.
    pub(super) fn take_if(&self, task: RecordId) -> Option<RecordId> {
        let taken =
            self.0.compare_exchange(task.index(), EMPTY, Ordering::AcqRel, Ordering::Relaxed);
        taken.ok().and_then(some)
    }
}

/// The task whose index was in a slot, if any.
fn some(bits: u32) -> Option<RecordId> {
    // SAFETY: besides `EMPTY`, a slot holds indices of ids only.
    (bits != EMPTY).then(|| unsafe { RecordId::new(bits) })
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// A slot, what lies behind each of two tasks, and how often each was had.
    struct Model {
        next: NextSlot,
        work: [AtomicU32; 2],
        had: [AtomicU32; 2],
    }

    impl Model {
        fn have(&self, task: RecordId) {
            let task = task.index() as usize;
            assert_eq!(self.work[task].load(Ordering::Relaxed), 1, "it is seen with the task");
            self.had[task].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The worker puts two tasks in and takes what is left, and a thief takes what it sees.
    fn each_is_had_once(put: fn(&NextSlot, RecordId) -> Option<RecordId>) {
        loom::model(move || {
            let model = Arc::new(Model {
                next: NextSlot(AtomicU32::new(EMPTY)),
                work: [AtomicU32::new(0), AtomicU32::new(0)],
                had: [AtomicU32::new(0), AtomicU32::new(0)],
            });
            let thieves: Vec<_> = (0..2)
                .map(|_| {
                    let model = Arc::clone(&model);
                    thread::spawn(move || {
                        let seen = model.next.peek();
                        let taken = seen.and_then(|task| model.next.take_if(task));
                        taken.into_iter().for_each(|task| model.have(task));
                    })
                })
                .collect();
            for task in 0..2 {
                model.work[task].store(1, Ordering::Relaxed);
                let behind = put(&model.next, RecordId::of_test(task as u32));
                behind.into_iter().for_each(|task| model.have(task));
            }
            model.next.take().into_iter().for_each(|task| model.have(task));
            thieves.into_iter().for_each(|thief| thief.join().unwrap());
            assert!(model.had.iter().all(|had| had.load(Ordering::Relaxed) == 1));
            assert_eq!(model.next.peek(), None);
        });
    }

    #[test]
    fn a_task_that_replaces_another_is_had_once_and_so_is_that() {
        each_is_had_once(NextSlot::replace);
    }

    #[test]
    fn a_task_that_is_offered_is_had_once() {
        each_is_had_once(NextSlot::offer);
    }
}
