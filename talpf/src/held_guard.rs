//! Guards that are held while peers access their regions.

use std::sync::Arc;

use talpf_runtime::{In, InOut};

/// A guard that is held while operations of peers may access its region. Its drop releases the
/// region with valid contents.
pub(crate) trait HeldGuard: Send {
    /// Releases the region as poisoned, after a failure of the run: puts to it may be missing, so
    /// it must not be read.
    fn poison(self: Box<Self>, reason: &str);
}

impl<T, D> HeldGuard for InOut<T, D>
where
    InOut<T, D>: Send,
{
    fn poison(self: Box<Self>, reason: &str) {
        self.fail(reason);
    }
}

/// Not poisoned, as peers only read the region.
impl<T, D> HeldGuard for In<T, D>
where
    In<T, D>: Send,
{
    fn poison(self: Box<Self>, _: &str) {}
}

/// A guard of a run that has failed, whose drop poisons the region.
pub(crate) struct PoisonOnDrop {
    guard: Option<Box<dyn HeldGuard>>,
    reason: Arc<str>,
}

impl PoisonOnDrop {
    pub(crate) fn new(guard: Box<dyn HeldGuard>, reason: &Arc<str>) -> Self {
        PoisonOnDrop { guard: Some(guard), reason: Arc::clone(reason) }
    }
}

impl Drop for PoisonOnDrop {
    fn drop(&mut self) {
        if let Some(guard) = self.guard.take() {
            guard.poison(&self.reason);
        }
    }
}
