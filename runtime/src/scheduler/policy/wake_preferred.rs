//! The worker that a push into an affinity queue wakes. With two workers there is no choice, so the
//! ablation on two cores does not judge it.

use super::{Policies, Policy};

/// Returns the worker to wake for a task of `preferred`'s affinity queue, rather than any other.
pub(in crate::scheduler) fn best_to_wake(policies: Policies, preferred: usize) -> Option<usize> {
    policies.has(Policy::WakePreferred).then_some(preferred)
}
