//! What a run gives.

use super::Machine;
use crate::Matrix;

/// The matrix after the last step, and what it took to get there.
#[derive(Clone, Debug)]
pub struct Solution {
    /// The cells with their border (`(rows + 2) x (cols + 2)`).
    pub matrix: Matrix,
    /// **Units**: seconds from the first to the last step, without allocation, initialisation and
    /// the collection of the result.
    pub seconds: f64,
    /// What was really used: a variant may need less than it was offered.
    pub machine: Machine,
}
