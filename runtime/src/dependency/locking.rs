//! The tile locks of tasks with commutative accesses: acquired before a task is queued, released as
//! its accesses close (`tile_lock.rs`).
#![allow(unsafe_code, reason = "says that the accesses of a task that has not begun are open")]

use smallvec::SmallVec;

use super::{OpenAccess, ReadySink, TileLock};
use crate::data::Mode;
use crate::record::{AccessSlot, Accesses, Record, RecordId, record};

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
pub(super) fn release_tile_locks<S: ReadySink>(access: OpenAccess) {
    for_each_lock(access, |lock| {
        if lock.held.take(1) {
            // SAFETY: a task that waits for a lock has stored the index of its id there, in
            // `acquire_from`.
            let id_of = |task| unsafe { RecordId::new(task) };
            let next_of = |task| record(id_of(task)).next_waiter();
            let set_next = |task, next| record(id_of(task)).set_next_waiter(next);
            if let Some(next) = lock.unlock(next_of, set_next) {
                resume::<S>(id_of(next), lock, access.task());
            }
        }
    });
}

/// Goes on with a task that has been handed a lock by the task `by`.
fn resume<S: ReadySink>(id: RecordId, lock: &TileLock, by: RecordId) {
    let locks = locks_of(record(id));
    let at = locks.partition_point(|(other, _)| std::ptr::from_ref(*other) < lock);
    let Some(((lock, held), rest)) = locks[at..].split_first() else {
        return;
    };
    lock.held.set(*held);
    if acquire_from(id, rest) {
        S::queue(id, by);
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
            && let Some(failure) = array.domain().lock().poisoned_before(*access, array.map_index())
        {
            task.poison(failure);
        }
    }
}
