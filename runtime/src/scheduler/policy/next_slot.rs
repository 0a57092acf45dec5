//! The next slot of a worker: the task that it runs right after the present one, past all queues.
//!
//! | figure | cost without the policy | noise |
//! |---|---|---|
//! | `two_sided.tasks_8B` | +72 % | -1 % |
//! | `runtime.chain` | +40 % | +1 % |
//! | `app.jacobi_1024` | +9 % | +1 % |
//! | `runtime.stencil_replay` | +9 % | 0 % |
#![allow(unsafe_code, reason = "makes ids of the indices that it has stored")]

use talpf_primitives::{AtomicU32, Ordering};

use crate::record::RecordId;

/// The word of a slot without a task.
pub(in crate::scheduler) const EMPTY: u32 = u32::MAX;

/// The task that a worker runs next. The worker puts tasks in and takes them out; other workers
/// take a task that has lain there for long.
pub(in crate::scheduler) struct NextSlot(AtomicU32);

impl NextSlot {
    /// Creates an empty slot.
    pub(in crate::scheduler) fn new() -> Self {
        NextSlot(AtomicU32::new(EMPTY))
    }

    /// Puts a task in, and returns the task that was there.
    #[inline]
    pub(in crate::scheduler) fn replace(&self, task: RecordId) -> Option<RecordId> {
        if self.0.load(Ordering::Relaxed) == EMPTY {
            self.0.store(task.index(), Ordering::Release);
            return None;
        }
        some(self.0.swap(task.index(), Ordering::AcqRel))
    }

    /// Puts a task in if the slot is empty, and returns it otherwise.
    #[inline]
    pub(in crate::scheduler) fn put_if_empty(&self, task: RecordId) -> Option<RecordId> {
        if self.0.load(Ordering::Relaxed) != EMPTY {
            return Some(task);
        }
        self.0.store(task.index(), Ordering::Release);
        None
    }

    #[inline]
    pub(in crate::scheduler) fn take(&self) -> Option<RecordId> {
        if self.0.load(Ordering::Relaxed) == EMPTY {
            return None;
        }
        some(self.0.swap(EMPTY, Ordering::AcqRel))
    }

    #[inline]
    pub(in crate::scheduler) fn peek(&self) -> Option<RecordId> {
        some(self.0.load(Ordering::Relaxed))
    }

    /// Takes `task` out if it is still there.
    pub(in crate::scheduler) fn take_if(&self, task: RecordId) -> Option<RecordId> {
        let taken =
            self.0.compare_exchange(task.index(), EMPTY, Ordering::AcqRel, Ordering::Relaxed);
        taken.ok().and_then(some)
    }
}

/// Returns the task whose index was in a slot, if any.
pub(in crate::scheduler) fn some(bits: u32) -> Option<RecordId> {
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
                next: NextSlot::new(),
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
