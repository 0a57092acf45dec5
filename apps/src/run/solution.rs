//! What a run gives.

use super::Machine;

/// The result of a run, and what it took to get there.
#[derive(Clone, Debug)]
pub struct Solution<R> {
    /// What was computed.
    pub result: R,
    /// **Units**: seconds from the first to the last step, without allocation, initialisation and
    /// the collection of the result.
    pub seconds: f64,
    /// What was really used: a variant may need less than it was offered.
    pub machine: Machine,
}
