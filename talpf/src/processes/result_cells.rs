//! Memory for the results of atomics that a rank carries out for ranks of other processes.
#![allow(unsafe_code, reason = "registers the memory that results are written to")]

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ibverbs_sim::{Access, MemoryRegion, ProtectionDomain, ScatterGather};
use talpf_primitives::Mutex;

use crate::error::Error;

/// Atomics that one rank carries out at a time: a few of each rank that has one under way.
const CELLS: usize = 64;

/// Registered words, each of one atomic at a time. The region is declared first, so it is dropped first.
pub(super) struct ResultCells {
    region: MemoryRegion,
    words: Box<[AtomicU64; CELLS]>,
    free: Mutex<Vec<usize>>,
}

/// The word of one atomic, until this is dropped.
pub(super) struct ResultCell {
    cells: Arc<ResultCells>,
    index: usize,
}

impl ResultCells {
    /// Registers words in the domain of a rank.
    ///
    /// **Errors**: the device has no room for one more region.
    pub(super) fn new(domain: &ProtectionDomain) -> Result<Self, Error> {
        let words = Box::new([const { AtomicU64::new(0) }; CELLS]);
        let start = NonNull::from(&*words).cast();
        // SAFETY: the words are dropped after the region, do not move, are atomics, and each is the target of one
        // request at a time.
        let region = unsafe { domain.register(start, CELLS * 8, Access::LOCAL_WRITE)? };
        Ok(ResultCells { region, words, free: Mutex::new((0..CELLS).collect()) })
    }

    /// Takes a word that no atomic has; `None` if all have one.
    pub(super) fn take(self: &Arc<Self>) -> Option<ResultCell> {
        let index = self.free.lock().pop()?;
        Some(ResultCell { cells: Arc::clone(self), index })
    }
}

impl ResultCell {
    /// Returns the word as an entry of a gather list.
    pub(super) fn entry(&self) -> ScatterGather {
        self.cells.region.slice(self.index * 8, 8)
    }

    /// Returns the result, once the atomic has been carried out.
    pub(super) fn value(&self) -> u64 {
        self.cells.words[self.index].load(Ordering::Relaxed)
    }
}

impl Drop for ResultCell {
    fn drop(&mut self) {
        self.cells.free.lock().push(self.index);
    }
}
