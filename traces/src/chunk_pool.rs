//! Chunks whose memory is touched before streams need them, so that no worker waits for pages from the
//! kernel while it records.
//!
//! The pool is filled before the run begins: one that records no more than that gets no page meanwhile. A page is not cheap: the kernel clears it, and a virtual machine may
//! have to get it from its host, for milliseconds that a core of the run lacks. Who takes one of the last
//! chunks wakes the thread of the pool, which adds a page at a time and ends with the recorder. Nobody
//! waits for the lock of the pool: a stream that finds it held, or the pool empty, allocates by itself. The
//! memory is on the NUMA node of the thread that touches it, in huge pages.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};

use crate::chunk::{CHUNK_RECORDS, ChunkWriter, HUGE_PAGE, Slot, slots_of_huge_page};

/// Number of chunks in a huge page.
const PAGE_CHUNKS: usize = HUGE_PAGE / (CHUNK_RECORDS * size_of::<Slot>());

/// Number of chunks in a full pool, of 16 MiB.
const FULL: usize = 8 * PAGE_CHUNKS;

/// Number of chunks below which the pool gets further ones.
const LOW: usize = FULL / 4;

/// Pool of empty chunks, each with room for [`CHUNK_RECORDS`].
#[derive(Debug, Default)]
pub(crate) struct ChunkPool {
    chunks: Mutex<Vec<ChunkWriter>>,
    /// Thread that adds chunks; `None` if the system gave none.
    filler: OnceLock<Option<Thread>>,
    ends: AtomicBool,
}

impl ChunkPool {
    /// Fills the pool, unless it was, for streams that may take `most` chunks.
    pub(crate) fn start(self: &Arc<Self>, most: usize) {
        self.filler.get_or_init(|| {
            self.fill(FULL.min(most));
            let pool = Arc::clone(self);
            let builder = thread::Builder::new().name("trace memory".to_owned());
            let filler = builder.spawn(move || {
                while !pool.ends.load(Ordering::Acquire) {
                    pool.fill(LOW.min(most));
                    thread::park();
                }
            });
            Some(filler.ok()?.thread().clone())
        });
    }

    /// Takes a chunk, if there is one at once.
    pub(crate) fn take(&self) -> Option<ChunkWriter> {
        let mut chunks = self.chunks.try_lock().ok()?;
        let chunk = chunks.pop();
        let is_low = chunks.len() < LOW;
        drop(chunks);
        if let Some(Some(filler)) = self.filler.get().filter(|_| is_low) {
            filler.unpark();
        }
        chunk
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        self.ends.store(true, Ordering::Release);
        if let Some(Some(filler)) = self.filler.get() {
            filler.unpark();
        }
    }

    /// Adds pages until there are so many chunks.
    fn fill(&self, chunks: usize) {
        while self.lock().len() < chunks {
            let filled = chunks_of_huge_page().map(ChunkWriter::touch).collect::<Vec<_>>();
            self.lock().extend(filled);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ChunkWriter>> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Allocates chunks in one huge page, if the kernel has them.
fn chunks_of_huge_page() -> impl Iterator<Item = ChunkWriter> {
    let (memory, first) = slots_of_huge_page();
    (0..PAGE_CHUNKS).map(move |chunk| {
        let start = first + chunk * CHUNK_RECORDS;
        ChunkWriter::in_memory(Arc::clone(&memory), start..start + CHUNK_RECORDS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Event;
    use crate::event::Record;

    #[test]
    fn a_pool_gives_each_chunk_that_it_has_once_and_none_over_another() {
        let pool = ChunkPool::default();
        assert!(pool.take().is_none());
        // No thread fills it again.
        pool.fill(PAGE_CHUNKS + 1);
        let mut chunks: Vec<ChunkWriter> =
            (0..2 * PAGE_CHUNKS).map(|_| pool.take().unwrap()).collect();
        assert!(pool.take().is_none());
        for (number, chunk) in chunks.iter_mut().enumerate() {
            assert!(chunk.len() == 0 && chunk.capacity() == CHUNK_RECORDS);
            let record = Record { time_ns: number as u64, event: Event::RecordingStopped };
            while chunk.push(record) {}
        }
        for (number, chunk) in chunks.into_iter().enumerate() {
            let chunk = chunk.finish();
            assert_eq!(chunk.len(), CHUNK_RECORDS);
            assert!(chunk.iter().all(|record| record.time_ns == number as u64));
        }
    }

    #[test]
    fn a_pool_is_full_at_its_start_and_its_thread_adds_to_the_last_chunks() {
        let pool: Arc<ChunkPool> = Arc::default();
        pool.start(usize::MAX);
        assert_eq!(pool.lock().len(), FULL);
        let mut taken = 0;
        while taken < 2 * FULL {
            match pool.take() {
                Some(_) => taken += 1,
                None => thread::yield_now(),
            }
        }
        pool.end();
        while Arc::strong_count(&pool) > 1 {
            thread::yield_now();
        }
    }
}
