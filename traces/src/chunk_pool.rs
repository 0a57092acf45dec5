//! Chunks whose memory a thread touches before streams need them, so that no worker waits for pages from
//! the kernel while it records.
//!
//! The thread begins with the first stream that takes such chunks, fills the pool, and parks. Who takes a chunk and leaves less
//! than half of them wakes it. It ends with the recorder. Nobody waits for the lock of the pool: a stream
//! that finds it held, or the pool empty, allocates by itself. The memory is on the NUMA node of the
//! thread, in huge pages of which each is the memory of a full pool.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};

use crate::chunk::{CHUNK_RECORDS, ChunkWriter, HUGE_PAGE, Slot, slots_of_huge_page};

/// Number of chunks in a full pool: a huge page.
const FULL: usize = HUGE_PAGE / (CHUNK_RECORDS * size_of::<Slot>());

/// Pool of empty chunks, each with room for [`CHUNK_RECORDS`].
#[derive(Debug, Default)]
pub(crate) struct ChunkPool {
    chunks: Mutex<Vec<ChunkWriter>>,
    /// Thread that fills the pool; `None` if the system gave none.
    filler: OnceLock<Option<Thread>>,
    ends: AtomicBool,
}

impl ChunkPool {
    /// Starts the thread, unless it was.
    pub(crate) fn start(self: &Arc<Self>) {
        self.filler.get_or_init(|| {
            let pool = Arc::clone(self);
            let builder = thread::Builder::new().name("trace memory".to_owned());
            let filler = builder.spawn(move || {
                while !pool.ends.load(Ordering::Acquire) {
                    pool.fill();
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
        let is_low = chunks.len() < FULL / 2;
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

    fn fill(&self) {
        let chunks = || self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        if chunks().len() < FULL / 2 {
            let filled = huge_page_of_chunks().map(ChunkWriter::touch).collect::<Vec<_>>();
            chunks().extend(filled);
        }
    }
}

/// Allocates the memory of a full pool, as one huge page if the kernel has them.
fn huge_page_of_chunks() -> impl Iterator<Item = ChunkWriter> {
    let (memory, first) = slots_of_huge_page();
    (0..FULL).map(move |chunk| {
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
    fn a_full_pool_gives_as_many_chunks_as_it_has_none_over_another() {
        let pool = ChunkPool::default();
        assert!(pool.take().is_none());
        // No thread fills it again.
        pool.fill();
        let mut chunks: Vec<ChunkWriter> = (0..FULL).map(|_| pool.take().unwrap()).collect();
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
    fn the_thread_fills_the_pool_and_ends_with_it() {
        let pool: Arc<ChunkPool> = Arc::default();
        pool.start();
        while pool.take().is_none() {
            thread::yield_now();
        }
        pool.end();
        while Arc::strong_count(&pool) > 1 {
            thread::yield_now();
        }
    }
}
