//! Pieces of the memory of a stream.
//!
//! A chunk is filled by its only [`ChunkWriter`], and any thread reads it meanwhile. A record is
//! stored in a slot that nobody reads yet, and then published by the length, with a store that costs
//! no more than a plain one. Slots never move, and what is published never changes.
#![allow(unsafe_code, reason = "shares records that are stored with threads that read them")]

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;

use crate::Event;
use crate::event::Record;

#[cfg(talpf_loom)]
use loom::cell::UnsafeCell;
#[cfg(talpf_loom)]
use loom::sync::atomic::{AtomicUsize, Ordering};
#[cfg(not(talpf_loom))]
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a huge page.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// Number of records of a chunk of 64 KiB.
pub(crate) const CHUNK_RECORDS: usize = (64 << 10) / size_of::<Record>();

/// Number of records from one that is touched to the next: one of these begins in every page.
const PAGE_RECORDS: usize = 4096 / size_of::<Record>();

/// Records in the order of recording, in memory that never grows.
pub(crate) struct Chunk {
    /// Number of records that are published.
    len: AtomicUsize,
    /// Memory of this chunk alone, or of several.
    memory: Arc<[Slot]>,
    /// Slots of this chunk.
    range: Range<usize>,
}

/// Memory of one record.
pub(crate) struct Slot(UnsafeCell<MaybeUninit<Record>>);

// SAFETY: the slots of a chunk below its `len` hold records that are only read, and those above it belong
// to the only writer. A reader sees the records below the length that it has loaded, as the writer stores
// them first.
unsafe impl Sync for Slot {}

/// Allocates slots, and returns them with the number of the first of those that are in one huge page, if the
/// kernel has them on demand.
pub(crate) fn slots_of_huge_page() -> (Arc<[Slot]>, usize) {
    // One is certainly inside of twice its size. What is never touched takes no memory.
    let memory = slots(2 * HUGE_PAGE / size_of::<Slot>());
    let start = memory.as_ptr().addr();
    let page = start.next_multiple_of(HUGE_PAGE);
    prefer_huge_page(memory.as_ptr().with_addr(page).cast());
    (memory, (page - start).div_ceil(size_of::<Slot>()))
}

#[cfg(not(miri))]
fn prefer_huge_page(start: *const u8) {
    use rustix::mm::{Advice, madvise};
    // SAFETY: the page is inside of memory of the caller, and the advice changes nothing of what is in it.
    let _ = unsafe { madvise(start.cast_mut().cast(), HUGE_PAGE, Advice::LinuxHugepage) };
}

#[cfg(miri)]
fn prefer_huge_page(_start: *const u8) {}

/// Allocates slots, without touching them.
fn slots(count: usize) -> Arc<[Slot]> {
    (0..count).map(|_| Slot(UnsafeCell::new(MaybeUninit::uninit()))).collect()
}

impl Chunk {
    /// Creates a chunk of one record.
    pub(crate) fn of(record: Record) -> Arc<Self> {
        let mut writer = ChunkWriter::new(1);
        writer.push(record);
        writer.finish()
    }

    /// Returns the number of records so far.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Returns the number of records that there is room for.
    #[inline(always)]
    pub(crate) fn capacity(&self) -> usize {
        self.range.end - self.range.start
    }

    /// Returns a record that is there.
    pub(crate) fn get(&self, index: usize) -> Option<&Record> {
        self.published().get(index).map(record)
    }

    /// Iterates over the records so far.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Record> {
        self.published().iter().map(record)
    }

    fn published(&self) -> &[Slot] {
        &self.slots()[..self.len()]
    }

    #[inline(always)]
    fn slots(&self) -> &[Slot] {
        &self.memory[self.range.start..self.range.end]
    }
}

/// Returns the record of a published slot.
fn record(slot: &Slot) -> &Record {
    slot.0.with(|slot| {
        // SAFETY: the slot is below a length that was published, so nobody writes it.
        let record = unsafe { &*slot };
        // SAFETY: it was written before that length was published.
        unsafe { record.assume_init_ref() }
    })
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunk ({} of {} records)", self.len(), self.capacity())
    }
}

/// The only writer of a chunk.
#[derive(Debug)]
pub(crate) struct ChunkWriter {
    chunk: Arc<Chunk>,
}

impl ChunkWriter {
    /// Creates an empty chunk, whose memory is not touched.
    pub(crate) fn new(records: usize) -> Self {
        Self::in_memory(slots(records), 0..records)
    }

    /// Creates an empty chunk out of slots that no other chunk has.
    pub(crate) fn in_memory(memory: Arc<[Slot]>, range: Range<usize>) -> Self {
        Self { chunk: Arc::new(Chunk { len: AtomicUsize::new(0), memory, range }) }
    }

    /// Touches every page, so that the kernel has given the memory before a record needs it.
    pub(crate) fn touch(self) -> Self {
        const BLANK: Record = Record { time_ns: 0, event: Event::RecordingStopped };
        for slot in self.chunk.slots().iter().step_by(PAGE_RECORDS) {
            slot.0.with_mut(|slot| {
                // SAFETY: nobody else writes, and nobody reads a slot before it is published.
                unsafe { *slot = MaybeUninit::new(BLANK) }
            });
        }
        self
    }

    /// Empties a chunk to fill it again; `None` if anybody else still has it.
    pub(crate) fn reuse(mut chunk: Arc<Chunk>) -> Option<Self> {
        Arc::get_mut(&mut chunk)?.len = AtomicUsize::new(0);
        Some(Self { chunk })
    }

    /// Stores a record. Returns `false` if the chunk is full.
    #[inline(always)]
    pub(crate) fn push(&mut self, record: Record) -> bool {
        let len = self.chunk.len.load(Ordering::Relaxed);
        let Some(slot) = self.chunk.slots().get(len) else { return false };
        slot.0.with_mut(|slot| {
            // SAFETY: nobody else writes, and nobody reads a slot that is not below the length.
            unsafe { *slot = MaybeUninit::new(record) }
        });
        self.chunk.len.store(len + 1, Ordering::Release);
        true
    }

    /// Returns `true` if there is room for no more records.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.capacity()
    }

    /// Returns the number of records so far.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.chunk.len.load(Ordering::Relaxed)
    }

    /// Returns the number of records that there is room for.
    #[inline(always)]
    pub(crate) fn capacity(&self) -> usize {
        self.chunk.capacity()
    }

    /// Returns the chunk for others to read.
    pub(crate) fn share(&self) -> Arc<Chunk> {
        Arc::clone(&self.chunk)
    }

    /// Returns the chunk, which changes no more.
    pub(crate) fn finish(self) -> Arc<Chunk> {
        self.chunk
    }
}

/// Cell with the interface of loom's.
#[cfg(not(talpf_loom))]
struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(talpf_loom))]
impl<T> UnsafeCell<T> {
    fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    #[inline(always)]
    fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    fn record(time_ns: u64) -> Record {
        Record { time_ns, event: Event::RecordingStopped }
    }

    #[test]
    fn records_are_there_for_others_as_soon_as_they_are_stored() {
        let mut writer = ChunkWriter::new(2);
        let chunk = writer.share();
        assert!(chunk.len() == 0 && chunk.get(0).is_none());
        assert!(writer.push(record(7)) && writer.push(record(8)) && !writer.push(record(9)));
        let times: Vec<u64> = chunk.iter().map(|record| record.time_ns).collect();
        assert_eq!((chunk.len(), times), (2, vec![7, 8]));
        assert_eq!(chunk.get(1).map(|record| record.time_ns), Some(8));
        assert!(chunk.get(2).is_none());
    }

    #[test]
    fn a_chunk_that_others_have_is_not_filled_again() {
        let mut writer = ChunkWriter::new(1).touch();
        let reader = writer.share();
        assert!(writer.push(record(7)));
        assert!(ChunkWriter::reuse(writer.finish()).is_none());
        let mut writer = ChunkWriter::reuse(reader).unwrap();
        assert!(writer.len() == 0 && writer.push(record(8)));
        assert_eq!(writer.finish().get(0).unwrap().time_ns, 8);
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use super::*;

    #[test]
    fn loom_a_published_record_is_seen_whole() {
        loom::model(|| {
            let mut writer = ChunkWriter::new(2);
            let chunk = writer.share();
            let reader = loom::thread::spawn(move || {
                let times: Vec<u64> = chunk.iter().map(|record| record.time_ns).collect();
                assert_eq!(times, [7, 8][..times.len()]);
            });
            for time_ns in [7, 8] {
                assert!(writer.push(Record { time_ns, event: Event::RecordingStopped }));
            }
            reader.join().unwrap();
            assert_eq!(writer.finish().len(), 2);
        });
    }
}
