//! Blocks of steps of a replayed graph.
//!
//! | figure | cost without the policy | noise |
//! |---|---|---|
//! | `runtime.stencil_replay` | +32 % | 0 % |

use super::{Policies, Policy};

/// Steps of a block. A task that begins a block is queued behind the ready tasks unless it is
/// inline, any other runs at once: so data passes the steps of a block while it is in a cache, and
/// a worker does not advance into later steps with an ever longer front of tasks.
const BLOCK_STEPS: usize = 8;

/// Returns `true` if a step begins a block.
#[inline]
pub(crate) fn begins_block(policies: Policies, step: usize) -> bool {
    step.is_multiple_of(BLOCK_STEPS) && policies.has(Policy::StepBlocks)
}
