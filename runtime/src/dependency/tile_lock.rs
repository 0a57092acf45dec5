//! Tile locks: commutative accesses exclude each other, in any order, and no worker blocks.
//!
//! Every tile of an array has a lock. A task with commutative accesses that nothing earlier holds
//! back acquires the locks of all tiles they touch before it is ready, in one order for all tasks,
//! so that no cycle of waiting tasks arises. Where a lock is taken the task joins the waiting tasks
//! and is left there. Closing an access releases its locks: each is handed to the task that has
//! waited longest, with which the same thread goes on.
//!
//! A lock is free, or taken with a stack of the tasks that have arrived since the holder last
//! emptied it; those that it has removed from there are a queue, which only the holder touches.
//!
//! # The race it prevents
//!
//! A task that fails records the regions it has poisoned before it releases its locks, and a task
//! searches for such records once it has acquired all of its own. A search before that could fall
//! between the start of the holder and its failure, and the task would run on poisoned data (R4).

use talpf_primitives::{AtomicU32, Ordering};

use crate::record::EventCounter;

const FREE: u32 = u32::MAX;
/// Taken without a waiting task; also the end of a list.
const NOBODY: u32 = u32::MAX - 1;

/// Mutual exclusion of commutative bodies on a tile.
pub(crate) struct TileLock {
    word: AtomicU32,
    /// First of the waiting tasks in the holder's queue.
    queue: AtomicU32,
    /// Number of the holder's open accesses of the tile.
    pub(super) held: EventCounter,
}

impl TileLock {
    pub(crate) fn new() -> Self {
        TileLock {
            word: AtomicU32::new(FREE),
            queue: AtomicU32::new(NOBODY),
            held: EventCounter::new(),
        }
    }

    /// Acquires the lock, or adds `task` to the waiting tasks. `set_next` stores the task that
    /// follows it there. Returns `true` if the lock was free.
    pub(super) fn acquire(&self, task: u32, set_next: impl Fn(u32)) -> bool {
        let mut current = self.word.load(Ordering::Relaxed);
        loop {
            let next = if current == FREE { NOBODY } else { task };
            if current != FREE {
                set_next(current);
            }
            let swapped =
                self.word.compare_exchange_weak(current, next, Ordering::AcqRel, Ordering::Relaxed);
            match swapped {
                Ok(_) => return current == FREE,
                Err(seen) => current = seen,
            }
        }
    }

    /// Releases the lock, which the caller has, or hands it to a waiting task, which is returned.
    pub(super) fn unlock(
        &self,
        next_of: impl Fn(u32) -> u32,
        set_next: impl Fn(u32, u32),
    ) -> Option<u32> {
        let mut first = self.queue.load(Ordering::Relaxed);
        if first == NOBODY {
            let freed =
                self.word.compare_exchange(NOBODY, FREE, Ordering::Release, Ordering::Relaxed);
            if freed.is_ok() {
                return None;
            }
            // The last to arrive is the first in the stack.
            let mut waiting = self.word.swap(NOBODY, Ordering::Acquire);
            while waiting != NOBODY {
                let earlier = next_of(waiting);
                set_next(waiting, first);
                first = waiting;
                waiting = earlier;
            }
        }
        self.queue.store(next_of(first), Ordering::Relaxed);
        Some(first)
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    struct Model {
        lock: TileLock,
        next: [AtomicU32; 3],
        inside: AtomicU32,
        runs: AtomicU32,
    }

    impl Model {
        /// Runs the holder, and then each task that the lock is handed to.
        fn run_holders(&self, task: u32) {
            let mut holder = Some(task);
            while let Some(task) = holder {
                assert_eq!(self.inside.load(Ordering::Relaxed), 0, "two at once");
                self.inside.store(1, Ordering::Relaxed);
                self.runs.fetch_add(1 << (8 * task), Ordering::Relaxed);
                self.inside.store(0, Ordering::Relaxed);
                let next_of = |task: u32| self.next[task as usize].load(Ordering::Relaxed);
                let set_next = |task: u32, next| {
                    self.next[task as usize].store(next, Ordering::Relaxed);
                };
                holder = self.lock.unlock(next_of, set_next);
            }
        }

        fn arrive(&self, task: u32) {
            let set_next = |next| self.next[task as usize].store(next, Ordering::Relaxed);
            if self.lock.acquire(task, set_next) {
                self.run_holders(task);
            }
        }
    }

    #[test]
    fn every_task_gets_the_lock_once_and_alone() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let model = Arc::new(Model {
                lock: TileLock::new(),
                next: std::array::from_fn(|_| AtomicU32::new(NOBODY)),
                inside: AtomicU32::new(0),
                runs: AtomicU32::new(0),
            });
            let others: Vec<_> = (1..3u32)
                .map(|task| {
                    let model = model.clone();
                    thread::spawn(move || model.arrive(task))
                })
                .collect();
            model.arrive(0);
            others.into_iter().for_each(|other| other.join().unwrap());
            assert_eq!(model.runs.load(Ordering::Relaxed), 0x01_01_01);
            assert_eq!(model.lock.word.load(Ordering::Relaxed), FREE);
        });
    }
}
