//! The pool of task records, one for the process.
//!
//! Records live in chunks that are never freed or moved, so an index names a record for ever and
//! a stale index reads a record of a later generation, never freed memory. That is what lets
//! bottom maps, edges and wakers refer to tasks without counting references. Every thread keeps a
//! few free records to itself and trades them with the pool a batch at a time.
#![allow(unsafe_code, reason = "turns indices into references to leaked chunks")]

use std::cell::RefCell;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use parking_lot::Mutex;

use super::Record;
use crate::error::Error;

const CHUNK: usize = 1 << CHUNK_BITS;
const CHUNK_BITS: u32 = 10;
const CHUNKS: usize = 1 << 14;
/// Most records that can be alive at once.
const LIMIT: usize = CHUNK * CHUNKS;
/// Records kept back so that a spawn that has begun can always end.
const RESERVE: usize = CHUNK;
const BATCH: usize = 64;

/// The index of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordId(u32);

impl RecordId {
    #[inline]
    pub(crate) const fn new(index: u32) -> Self {
        RecordId(index)
    }

    #[inline]
    pub(crate) const fn index(self) -> u32 {
        self.0
    }
}

static CHUNK_TABLE: [AtomicPtr<[Record; CHUNK]>; CHUNKS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS];

struct Shared {
    batches: Vec<Vec<u32>>,
    chunks: usize,
}

static SHARED: Mutex<Shared> = Mutex::new(Shared { batches: Vec::new(), chunks: 0 });

/// Records handed to threads and not returned, rounded up to batches.
static TAKEN: AtomicU32 = AtomicU32::new(0);

/// The record of an index.
#[inline]
pub(crate) fn record(id: RecordId) -> &'static Record {
    let chunk = CHUNK_TABLE[(id.0 >> CHUNK_BITS) as usize].load(Ordering::Acquire);
    debug_assert!(!chunk.is_null());
    // SAFETY: an index is only made by `allocate`, after its chunk was leaked and stored in the
    // table; chunks are neither freed nor replaced.
    let chunk = unsafe { &*chunk };
    &chunk[id.0 as usize & (CHUNK - 1)]
}

thread_local! {
    static FREE: RefCell<Free> = const { RefCell::new(Free(Vec::new())) };
}

struct Free(Vec<u32>);

impl Drop for Free {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            give_back(std::mem::take(&mut self.0));
        }
    }
}

/// **Errors**: the pool is so full that no further task should be spawned.
#[inline]
pub(super) fn check_room() -> Result<(), Error> {
    let limit = LIMIT - RESERVE;
    if TAKEN.load(Ordering::Relaxed) as usize > limit {
        return Err(Error::Size { what: "number of live tasks", value: limit + 1, limit });
    }
    Ok(())
}

/// A record that belongs to the caller.
#[inline]
pub(super) fn allocate() -> RecordId {
    let taken = FREE.try_with(|free| free.borrow_mut().0.pop());
    match taken {
        Ok(Some(index)) => RecordId(index),
        _ => refill(),
    }
}

/// Returns a record of a completed task.
#[inline]
pub(super) fn free(id: RecordId) {
    let kept = FREE.try_with(|free| {
        let free = &mut free.borrow_mut().0;
        free.push(id.0);
        if free.len() >= 2 * BATCH {
            give_back(free.split_off(BATCH));
        }
    });
    if kept.is_err() {
        // The thread is ending and its own list is gone.
        give_back(vec![id.0]);
    }
}

#[cold]
fn refill() -> RecordId {
    let mut batch = take_batch();
    let first = batch.pop().unwrap_or_else(|| unreachable!("batches are not empty"));
    let rest = FREE.try_with(|free| free.borrow_mut().0.append(&mut batch));
    if rest.is_err() && !batch.is_empty() {
        give_back(batch);
    }
    RecordId(first)
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

fn give_back(batch: Vec<u32>) {
    TAKEN.fetch_sub(batch.len() as u32, Ordering::Relaxed);
    SHARED.lock().batches.push(batch);
}

fn grow(shared: &mut Shared) {
    assert!(shared.chunks < CHUNKS, "spawns are refused long before: see `check_room`");
    let records: Box<[Record]> = std::iter::repeat_with(Record::new).take(CHUNK).collect();
    let Ok(chunk) = Box::<[Record; CHUNK]>::try_from(records) else {
        unreachable!("a chunk has CHUNK records");
    };
    CHUNK_TABLE[shared.chunks].store(Box::into_raw(chunk), Ordering::Release);
    let first = (shared.chunks << CHUNK_BITS) as u32;
    shared.chunks += 1;
    for start in (0..CHUNK).step_by(BATCH).rev() {
        let batch = (start..start + BATCH).rev().map(|index| first + index as u32).collect();
        shared.batches.push(batch);
    }
}

/// Visits every record there is, used or not.
pub(crate) fn for_each_record(mut visit: impl FnMut(RecordId, &'static Record)) {
    let chunks = SHARED.lock().chunks;
    for index in 0..(chunks << CHUNK_BITS) as u32 {
        visit(RecordId(index), record(RecordId(index)));
    }
}
