//! Guards that are held while peers access their regions.

use std::sync::Arc;

use talpf_runtime::{Hold, In, InOut};

/// A guard that is held while operations of peers may access its region. Its drop releases the
/// region with valid contents.
pub(crate) enum HeldGuard {
    /// Peers write to the region.
    Written(Hold),
    /// Peers only read the region.
    Read(Hold),
    Other(Box<dyn OtherGuard>),
}

/// A guard that does more than release its region.
pub(crate) trait OtherGuard: Send {
    /// As [`HeldGuard::poison`].
    fn poison(self: Box<Self>, reason: &str);
}

impl HeldGuard {
    /// Releases the region after a failure of the run, as poisoned if peers write to it: puts to it
    /// may be missing, so it must not be read.
    pub(crate) fn poison(self, reason: &str) {
        match self {
            HeldGuard::Written(guard) => guard.fail(reason),
            HeldGuard::Read(guard) => drop(guard),
            HeldGuard::Other(guard) => guard.poison(reason),
        }
    }
}

impl<T, D> From<InOut<T, D>> for HeldGuard {
    #[inline]
    fn from(guard: InOut<T, D>) -> Self {
        HeldGuard::Written(guard.into_hold())
    }
}

impl<T, D> From<In<T, D>> for HeldGuard {
    #[inline]
    fn from(guard: In<T, D>) -> Self {
        HeldGuard::Read(guard.into_hold())
    }
}

/// A guard of a run that has failed, whose drop poisons the region.
pub(crate) struct PoisonOnDrop {
    guard: Option<HeldGuard>,
    reason: Arc<str>,
}

impl PoisonOnDrop {
    pub(crate) fn new(guard: HeldGuard, reason: &Arc<str>) -> Self {
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
