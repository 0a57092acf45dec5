//! Thefts of several tasks at once.
//!
//! | figure | cost without the policy | noise |
//! |---|---|---|
//! | `runtime.stencil` | +165 % | +1 % |

use super::{Policies, Policy};

/// Most tasks that a thief takes at once.
pub(super) const BATCH: usize = 32;

/// Returns the number of tasks that a thief takes at most at once.
pub(in crate::scheduler) fn most_stolen(policies: Policies) -> usize {
    if policies.has(Policy::StealBatch) { BATCH } else { 1 }
}
