//! The pool of task records, one for the process.
//!
//! Records lie side by side in address space that is reserved once. A piece of it is made usable at
//! a time, and a chunk of records is made in it at a time. They are never freed or moved, so an
//! index refers to the same record for ever and a stale index reads a record of a later generation,
//! never freed memory. So bottom maps, edges and wakers refer to tasks without counting references.
//! Every thread keeps a few free records to itself and trades them with the pool a batch at a time.
#![allow(unsafe_code, reason = "turns indices into references to reserved memory")]

use std::alloc::{Layout, handle_alloc_error};
use std::cell::Cell;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use parking_lot::Mutex;
use talpf_primitives::HUGE_PAGE;

use super::{Record, memory};
use crate::error::Error;

/// Number of records that are made at once.
const CHUNK: usize = 1 << 10;
/// Number of records whose memory is made usable at once: a huge page of them. Small pages hold
/// eight records each, and most tasks of a large graph would miss the TLB.
const PIECE: usize = (HUGE_PAGE / size_of::<Record>()).next_multiple_of(CHUNK);
/// Largest number of records that can be in use at once, if address space is not scarce.
const MOST: usize = 1 << 24;
/// Divisor for the part of a limit of address space that records may take.
const SHARE: usize = 16;
/// Number of records reserved so that a spawn that has begun can always end.
const RESERVE: usize = CHUNK;
const BATCH: usize = 64;
/// Largest number of free records that a thread keeps.
const KEPT: usize = 2 * BATCH;

#[cfg(not(talpf_loom))]
const _: () = assert!(MOST.is_multiple_of(PIECE) && PIECE >= 2 * RESERVE);

/// The index of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(u32);

impl RecordId {
    /// # Safety
    /// The index is that of an id, whose [`index`](Self::index) it was.
    #[inline]
    pub(crate) const unsafe fn new(index: u32) -> Self {
        RecordId(index)
    }

    /// Creates an id for models and tests, which never access its record.
    #[cfg(test)]
    pub(crate) const fn of_test(index: u32) -> Self {
        RecordId(index)
    }

    #[inline]
    pub(crate) const fn index(self) -> u32 {
        self.0
    }
}

/// Address of the first record, once there is one.
static FIRST: AtomicPtr<Record> = AtomicPtr::new(std::ptr::null_mut());

struct Shared {
    batches: Vec<Vec<u32>>,
    /// Number of records that are made, and of those for which address space is reserved.
    made: usize,
    room: usize,
}

static SHARED: Mutex<Shared> = Mutex::new(Shared { batches: Vec::new(), made: 0, room: 0 });

/// Number of records handed to threads and not returned, rounded up to batches.
static TAKEN: AtomicU32 = AtomicU32::new(0);
/// Limit of `TAKEN`, above which spawns are refused.
static LIMIT: AtomicU32 = AtomicU32::new((MOST - RESERVE) as u32);

/// Returns the record of an id.
#[inline]
pub(crate) fn record(id: RecordId) -> &'static Record {
    let first = FIRST.load(Ordering::Acquire);
    debug_assert!(!first.is_null());
    // SAFETY: an index is only made by `grow`, after its record was, in one mapping, and ids of
    // indices only. A thread that has an id got it from there by hand-overs that synchronise.
    let record = unsafe { first.add(id.0 as usize) };
    // SAFETY: as above; records are not freed or moved.
    unsafe { &*record }
}

thread_local! {
    static FREE: Free = const { Free::new() };
    static END: AtEnd = const { AtEnd };
}

/// The free records of a thread.
struct Free {
    /// [`UNUSED`] if the thread keeps none, as they would not be given back.
    count: Cell<usize>,
    kept: [Cell<u32>; KEPT],
}

/// Larger than any number of records, so that there is no room for one.
const UNUSED: usize = usize::MAX;

impl Free {
    const fn new() -> Self {
        Free { count: Cell::new(UNUSED), kept: [const { Cell::new(0) }; KEPT] }
    }

    #[inline]
    fn push(&self, index: u32) {
        let count = self.count.get();
        match self.kept.get(count) {
            Some(place) => {
                place.set(index);
                self.count.set(count + 1);
            }
            None => self.push_to_full(index),
        }
    }

    #[cold]
    fn push_to_full(&self, index: u32) {
        if self.is_used() {
            give_back(self.take(BATCH));
            self.push(index);
        } else {
            give_back(vec![index]);
        }
    }

    #[inline]
    fn pop(&self) -> Option<u32> {
        let last = self.count.get().wrapping_sub(1);
        let index = self.kept.get(last)?.get();
        self.count.set(last);
        Some(index)
    }

    #[cold]
    fn refill(&self) -> u32 {
        let mut batch = take_batch();
        let first = batch.pop().unwrap_or_else(|| unreachable!("batches are not empty"));
        if self.is_used() {
            batch.iter().for_each(|&index| self.push(index));
        } else {
            give_back(batch);
        }
        first
    }

    /// Returns `true` if the thread keeps records, which it begins to do here.
    fn is_used(&self) -> bool {
        if self.count.get() == UNUSED && END.try_with(|_| ()).is_ok() {
            self.count.set(0);
        }
        self.count.get() != UNUSED
    }

    fn take(&self, most: usize) -> Vec<u32> {
        (0..most).map_while(|_| self.pop()).collect()
    }
}

/// A thread-local that gives back the records of a thread when it ends. Separate, so that the list
/// itself is never destroyed.
struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        FREE.with(|free| {
            give_back(free.take(KEPT));
            free.count.set(UNUSED);
        });
    }
}

/// Allocates a record of a new task, which belongs to the caller.
///
/// **Errors**: the pool is so full that no further task should be spawned.
#[inline]
pub(crate) fn allocate() -> Result<RecordId, Error> {
    match FREE.with(Free::pop) {
        Some(index) => Ok(RecordId(index)),
        None => allocate_in_pool(),
    }
}

#[cold]
fn allocate_in_pool() -> Result<RecordId, Error> {
    let limit = LIMIT.load(Ordering::Relaxed);
    if TAKEN.load(Ordering::Relaxed) > limit {
        let limit = limit as usize;
        return Err(Error::Size { what: "number of live tasks", value: limit + 1, limit });
    }
    Ok(allocate_more())
}

/// Allocates a continuation record of a task, which belongs to the caller.
pub(crate) fn allocate_more() -> RecordId {
    RecordId(FREE.with(|free| free.pop().unwrap_or_else(|| free.refill())))
}

/// Returns a record of a completed task.
#[inline]
pub(crate) fn free(id: RecordId) {
    FREE.with(|free| free.push(id.0));
}

fn take_batch() -> Vec<u32> {
    let mut shared = SHARED.lock();
    if shared.batches.is_empty() {
        grow(&mut shared);
    }
    let batch = shared.batches.pop().unwrap_or_default();
    TAKEN.fetch_add(batch.len() as u32, Ordering::Relaxed);
    batch
}

#[cold]
fn give_back(batch: Vec<u32>) {
    TAKEN.fetch_sub(batch.len() as u32, Ordering::Relaxed);
    if !batch.is_empty() {
        SHARED.lock().batches.push(batch);
    }
}

#[cold]
fn grow(shared: &mut Shared) {
    if shared.room == 0 {
        reserve(shared);
    }
    assert!(shared.made < shared.room, "spawns are refused long before: see `allocate`");
    // SAFETY: there is room for a chunk behind the records that are made.
    let chunk = unsafe { FIRST.load(Ordering::Relaxed).add(shared.made) };
    if shared.made.is_multiple_of(PIECE) {
        let bytes = PIECE * size_of::<Record>();
        // SAFETY: the chunk begins a piece of what `reserve` has mapped, and nobody has used that.
        let is_usable = unsafe { memory::make_usable(chunk.cast(), bytes) };
        if !is_usable {
            handle_alloc_error(Layout::new::<[Record; PIECE]>());
        }
    }
    for index in 0..CHUNK {
        // SAFETY: as above.
        let place = unsafe { chunk.add(index) };
        // SAFETY: the place is usable and nobody's.
        unsafe { place.write(Record::new()) };
    }
    let first = shared.made as u32;
    shared.made += CHUNK;
    for start in (0..CHUNK).step_by(BATCH).rev() {
        let batch = (start..start + BATCH).rev().map(|index| first + index as u32).collect();
        shared.batches.push(batch);
    }
}

/// Reserves address space for as many records as the process may have: [`MOST`], or a small share
/// of its limit of address space.
fn reserve(shared: &mut Shared) {
    let share = (memory::allowed() / SHARE / size_of::<Record>()).next_multiple_of(PIECE);
    let half = |room: usize| (room / 2).next_multiple_of(PIECE);
    let halves =
        std::iter::successors(Some(MOST.min(share)), |&room| (room > PIECE).then_some(half(room)));
    for room in halves {
        if let Some(first) = memory::reserve(room * size_of::<Record>()) {
            shared.room = room;
            LIMIT.store((room - RESERVE) as u32, Ordering::Relaxed);
            FIRST.store(first.as_ptr().cast(), Ordering::Release);
            return;
        }
    }
    handle_alloc_error(Layout::new::<[Record; CHUNK]>());
}

/// Visits every record, used or not.
pub(crate) fn for_each_record(mut visit: impl FnMut(RecordId, &'static Record)) {
    let made = SHARED.lock().made;
    for index in 0..made as u32 {
        visit(RecordId(index), record(RecordId(index)));
    }
}

#[cfg(all(test, not(any(talpf_loom, talpf_shuttle))))]
mod tests {
    use super::*;

    /// Checks both in one test, since no other test may take records meanwhile.
    #[test]
    fn what_threads_do_not_keep_and_what_they_leave_is_there_for_others() {
        const IDS: usize = 16 * CHUNK;
        let take_and_free = || {
            let ids: Vec<_> = (0..IDS).map(|_| allocate_more()).collect();
            ids.into_iter().for_each(free);
        };
        take_and_free();
        let made = || SHARED.lock().made;
        let before = made();
        std::thread::scope(|scope| scope.spawn(take_and_free).join()).unwrap();
        for _ in 0..1000 {
            std::thread::spawn(|| free(allocate_more())).join().unwrap();
        }
        assert!(made() <= before + 4 * CHUNK, "{before} records before, {} after", made());
    }
}
