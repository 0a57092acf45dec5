//! The seam between schedulers and the detection of hangs.

use super::{Census, Shared};

/// An observer that workers call when they have found nothing to do.
pub(crate) trait Watchdog: Sync {
    /// Checks for a hang.
    fn watch(&self, shared: &Shared);

    /// Checks once more, on a worker that is parked, after a check that has found `before`. Returns
    /// `true` if the runtime certainly hangs.
    fn is_certain(&self, shared: &Shared, before: &mut Option<Stillness>) -> bool;

    /// Returns `true` if something waits and nothing of the runtime can go on by itself.
    fn is_stuck(&self, shared: &Shared) -> bool;

    /// Reports a hang that is certain.
    fn report_certain(&self, shared: &Shared);
}

/// The findings of one check of a process in which nothing moves.
#[derive(PartialEq, Eq)]
pub(crate) struct Stillness {
    pub(crate) activity: u64,
    pub(crate) others: Census,
}
