//! Progress of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counter of finished steps. Clones share the count.
///
/// The counter is plain, so that a solver spends a nanosecond on it and does not depend on
/// terminals.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    steps: Arc<AtomicUsize>,
}

impl Progress {
    /// Counts one more finished step, and returns the number of steps finished so far.
    ///
    /// **Ordering**: none; the count says nothing about the visibility of the cells.
    pub fn advance(&self) -> usize {
        self.steps.fetch_add(1, Relaxed) + 1
    }

    /// Returns the number of steps finished so far.
    pub fn steps(&self) -> usize {
        self.steps.load(Relaxed)
    }
}
