//! How far a run has come.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A count of finished steps that a run advances and anyone may read. Clones share the count.
///
/// A plain counter, so that a solver tells its progress in a nanosecond and knows nothing of
/// terminals.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    steps: Arc<AtomicUsize>,
}

impl Progress {
    /// Counts one more finished step.
    ///
    /// **Ordering**: none; the count says nothing about the visibility of the cells.
    pub fn advance(&self) {
        self.steps.fetch_add(1, Relaxed);
    }

    /// Steps finished so far.
    pub fn steps(&self) -> usize {
        self.steps.load(Relaxed)
    }
}
