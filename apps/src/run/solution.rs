//! Result of a run.

use super::Machine;

/// Result of a run, with its time and its machine.
#[derive(Clone, Debug)]
pub struct Solution<R> {
    /// Computed result.
    pub result: R,
    /// Time from the first to the last step, without allocation, initialisation and the collection
    /// of the result. **Units**: seconds.
    pub seconds: f64,
    /// Machine actually used: a variant may need less than it was given.
    pub machine: Machine,
}
