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
#![allow(unsafe_code, reason = "says that the accesses of a task that has not begun are open")]

use smallvec::SmallVec;
use talpf_primitives::{AtomicU32, Ordering};

use super::{AccessSlot, OpenAccess};
use crate::data::Mode;
use crate::record::{Accesses, EventCounter, Record, RecordId, record};
use crate::task;

const FREE: u32 = u32::MAX;
/// Taken without a waiting task; also the end of a list.
const NOBODY: u32 = u32::MAX - 1;

/// Mutual exclusion of commutative bodies on a tile.
pub(crate) struct TileLock {
    word: AtomicU32,
    /// First of the waiting tasks in the holder's queue.
    queue: AtomicU32,
    /// Number of the holder's open accesses of the tile.
    held: EventCounter,
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
    fn acquire(&self, task: u32, set_next: impl Fn(u32)) -> bool {
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
    fn unlock(&self, next_of: impl Fn(u32) -> u32, set_next: impl Fn(u32, u32)) -> Option<u32> {
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

/// Acquires the locks of a task that nothing earlier holds back. Returns `false` if it waits for
/// one of them: the thread that hands the lock over goes on with the task.
pub(crate) fn acquire_tile_locks(id: RecordId) -> bool {
    // For the hang report: all earlier accesses have closed.
    record(id).pending.set(0);
    acquire_from(id, &locks_of(record(id)))
}

/// Acquires `locks` as `acquire_tile_locks` does.
fn acquire_from(id: RecordId, locks: &[(&TileLock, u32)]) -> bool {
    let waiting = record(id);
    for (lock, held) in locks {
        if !lock.acquire(id.index(), |next| waiting.set_next_waiter(next)) {
            return false;
        }
        lock.held.set(*held);
    }
    check_for_failures(waiting);
    true
}

/// Releases the locks of a commutative access that is about to close.
#[cold]
pub(super) fn release_tile_locks(access: OpenAccess) {
    for_each_lock(access, |lock| {
        if lock.held.take(1) {
            // SAFETY: a task that waits for a lock has stored the index of its id there, in
            // `acquire_from`.
            let id_of = |task| unsafe { RecordId::new(task) };
            let next_of = |task| record(id_of(task)).next_waiter();
            let set_next = |task, next| record(id_of(task)).set_next_waiter(next);
            if let Some(next) = lock.unlock(next_of, set_next) {
                resume(id_of(next), lock);
            }
        }
    });
}

/// Goes on with a task that has been handed a lock.
fn resume(id: RecordId, lock: &TileLock) {
    let locks = locks_of(record(id));
    let at = locks.partition_point(|(other, _)| std::ptr::from_ref(*other) < lock);
    let Some(((lock, held), rest)) = locks[at..].split_first() else {
        return;
    };
    lock.held.set(*held);
    if acquire_from(id, rest) {
        task::release_ready(id);
    }
}

/// Returns the locks that a task needs, in the order of all tasks, each with the number of its
/// accesses of that tile.
fn locks_of(task: &'static Record) -> SmallVec<[(&'static TileLock, u32); 8]> {
    let mut locks: SmallVec<[(&TileLock, u32); 8]> = SmallVec::new();
    for access in commutative(task) {
        for_each_lock(access, |lock| locks.push((lock, 1)));
    }
    locks.sort_unstable_by_key(|(lock, _)| std::ptr::from_ref(*lock));
    locks.dedup_by(|(lock, _), (before, held)| {
        let same = std::ptr::eq(*lock, *before);
        *held += u32::from(same);
        same
    });
    locks
}

/// Returns the accesses that need locks, of a task that has not begun. The lender of one that
/// touches no element may have closed before it.
fn commutative(task: &'static Record) -> impl Iterator<Item = OpenAccess> {
    let needs_locks =
        |slot: &AccessSlot| slot.mode() == Mode::Commutative && !slot.rect().is_empty();
    let accesses = Accesses::of(task).filter(move |access| needs_locks(access.slot()));
    // SAFETY: the accesses of a task that has not begun are open.
    accesses.map(|access| unsafe { OpenAccess::new(access) })
}

fn for_each_lock(access: OpenAccess, mut visit: impl FnMut(&'static TileLock)) {
    let (array, rect) = (access.array(), access.slot().rect());
    if !rect.is_empty() {
        let locks = array.tile_locks();
        array.tiles().for_each(&rect, |tile, _| visit(&locks[tile]));
    }
}

/// Poisons a task that has all its locks if tasks that held them before have failed.
fn check_for_failures(task: &'static Record) {
    for access in commutative(task) {
        let array = access.array();
        if array.was_poisoned()
            && let Some(failure) = array.domain().lock().poisoned_before(access)
        {
            task.poison(failure);
        }
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
