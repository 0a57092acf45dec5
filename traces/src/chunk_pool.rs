//! Chunks whose memory a thread touches before streams need them, so that no worker waits for pages from
//! the kernel while it records.
//!
//! The thread begins with the first chunk that a stream takes, fills the pool, and parks. Who takes a
//! chunk and leaves less than half of them wakes it. It ends with the recorder. Nobody waits for the
//! lock of the pool: a stream that finds it held, or the pool empty, allocates by itself. The memory is
//! on the NUMA node of the thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};

use crate::chunk::ChunkWriter;

/// Number of chunks in a full pool: 2 MiB.
const FULL: usize = 32;

/// Pool of empty chunks, each with room for the same number of records.
#[derive(Debug)]
pub(crate) struct ChunkPool {
    records: usize,
    chunks: Mutex<Vec<ChunkWriter>>,
    /// Thread that fills the pool; `None` if the system gave none.
    filler: OnceLock<Option<Thread>>,
    ends: AtomicBool,
}

impl ChunkPool {
    /// Creates an empty pool of chunks for `records` records.
    pub(crate) fn new(records: usize) -> Arc<Self> {
        Arc::new(Self {
            records,
            chunks: Mutex::default(),
            filler: OnceLock::new(),
            ends: AtomicBool::new(false),
        })
    }

    /// Takes a chunk, if there is one at once.
    pub(crate) fn take(self: &Arc<Self>) -> Option<ChunkWriter> {
        let filler = self.filler.get_or_init(|| self.start());
        let mut chunks = self.chunks.try_lock().ok()?;
        let chunk = chunks.pop();
        let is_low = chunks.len() < FULL / 2;
        drop(chunks);
        if let Some(filler) = filler.as_ref().filter(|_| is_low) {
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

    fn start(self: &Arc<Self>) -> Option<Thread> {
        let pool = Arc::clone(self);
        let builder = thread::Builder::new().name("trace memory".to_owned());
        let filler = builder.spawn(move || {
            while !pool.ends.load(Ordering::Acquire) {
                pool.fill();
                thread::park();
            }
        });
        Some(filler.ok()?.thread().clone())
    }

    fn fill(&self) {
        let len = || self.chunks.lock().unwrap_or_else(PoisonError::into_inner).len();
        while len() < FULL && !self.ends.load(Ordering::Acquire) {
            let chunk = ChunkWriter::touched(self.records);
            self.chunks.lock().unwrap_or_else(PoisonError::into_inner).push(chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pool_gives_as_many_chunks_as_it_has() {
        let pool = ChunkPool::new(10);
        // No thread fills it again.
        pool.filler.set(None).unwrap();
        assert!(pool.take().is_none());
        pool.fill();
        for _ in 0..FULL {
            let chunk = pool.take().unwrap();
            assert!(chunk.len() == 0 && chunk.capacity() == 10);
        }
        assert!(pool.take().is_none());
    }

    #[test]
    fn the_thread_fills_the_pool_and_ends_with_it() {
        let pool = ChunkPool::new(10);
        while pool.take().is_none() {
            thread::yield_now();
        }
        pool.end();
        while Arc::strong_count(&pool) > 1 {
            thread::yield_now();
        }
    }
}
