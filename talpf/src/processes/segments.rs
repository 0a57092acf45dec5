//! Arrays in memory of the rail, which other processes map: puts and gets copy directly.
#![allow(unsafe_code, reason = "memory of the rail becomes that of arrays")]

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use ibverbs_sim::{Rail, RailMemory};
use talpf_runtime::{Allocation, ArrayMemory};

/// Bytes of the smallest array for which the rail is asked: less travels with its packet, and takes
/// a page there.
const SMALLEST: usize = 4096;

/// The memory of a rail, as a source for arrays.
pub(crate) struct Segments(pub(crate) Arc<dyn Rail>);

impl fmt::Debug for Segments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Segments of process {}", self.0.process())
    }
}

impl ArrayMemory for Segments {
    fn allocate(&self, bytes: usize) -> Option<Box<dyn Allocation>> {
        let memory = (bytes >= SMALLEST).then(|| self.0.allocate(bytes)).flatten()?;
        Some(Box::new(Segment(memory)))
    }
}

struct Segment(Box<dyn RailMemory>);

// SAFETY: the contract of the rail's memory, which no other array gets while this one has it.
unsafe impl Allocation for Segment {
    fn memory(&self) -> NonNull<[u8]> {
        self.0.memory()
    }
}
