//! The part of a replayed task that schedulers read.

/// The preferred worker of a replayed task, with which the replay's part of it begins.
pub(crate) struct ReplayHead {
    preferred_worker: Option<u32>,
}

impl ReplayHead {
    pub(crate) fn new(preferred_worker: Option<u32>) -> Self {
        ReplayHead { preferred_worker }
    }

    /// Returns the worker that runs the task unless another has nothing else to do.
    #[inline]
    pub(crate) fn preferred_worker(&self) -> Option<usize> {
        self.preferred_worker.map(|worker| worker as usize)
    }
}
