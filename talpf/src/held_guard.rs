//! Guards of regions that peers reach.

use std::sync::Arc;

use talpf_runtime::{In, InOut};

/// A guard that is kept while peers' operations may reach its region. Dropping it says that the
/// region is as it should be.
pub(crate) trait HeldGuard: Send {
    /// Releases the region when the run has failed: what was to be put there may be missing, so
    /// nobody must read it.
    fn give_up(self: Box<Self>, reason: &str);
}

impl<T, D> HeldGuard for InOut<T, D>
where
    InOut<T, D>: Send,
{
    fn give_up(self: Box<Self>, reason: &str) {
        self.fail(reason);
    }
}

/// Peers only read it.
impl<T, D> HeldGuard for In<T, D>
where
    In<T, D>: Send,
{
    fn give_up(self: Box<Self>, _: &str) {}
}

/// A guard of a run that has failed: dropping it gives the region up.
pub(crate) struct GivenUp {
    guard: Option<Box<dyn HeldGuard>>,
    reason: Arc<str>,
}

impl GivenUp {
    pub(crate) fn new(guard: Box<dyn HeldGuard>, reason: &Arc<str>) -> Self {
        GivenUp { guard: Some(guard), reason: Arc::clone(reason) }
    }
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        if let Some(guard) = self.guard.take() {
            guard.give_up(&self.reason);
        }
    }
}
