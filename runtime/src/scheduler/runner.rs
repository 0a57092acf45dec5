//! The seam between schedulers and the code that runs tasks.

use crate::record::RecordId;

/// A type, without values, that runs tasks: workers are made for one, so that they call it as they
/// call any function.
pub(crate) trait Runner: 'static {
    /// Runs a ready or woken task until its body ends or awaits.
    fn run(task: RecordId);
}
