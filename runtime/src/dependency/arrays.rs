//! The arrays of a group, as one room of dependencies.

use talpf_primitives::Mutex;

use super::Domain;

/// The part of a group that its arrays share, and that lives as long as one of them does.
pub(crate) struct Arrays {
    pub(crate) domain: Mutex<Domain>,
    /// Number of the group's runtime, which no other of the process has.
    runtime: u64,
    workers: usize,
}

impl Arrays {
    /// Creates the part of a group of `runtime`, which has so many workers.
    pub(crate) fn new(runtime: u64, workers: usize) -> Self {
        Arrays { domain: Mutex::default(), runtime, workers }
    }

    /// Returns `true` if both are of one runtime.
    pub(crate) fn is_of_runtime_of(&self, other: &Arrays) -> bool {
        self.runtime == other.runtime
    }

    /// Returns the number of workers of the runtime.
    pub(crate) fn workers(&self) -> usize {
        self.workers
    }
}
