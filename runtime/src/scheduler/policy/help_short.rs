//! Help of a spawner of short tasks, whose data would be cold by the time another worker ran them.
//!
//! | figure | cost without the policy | noise |
//! |---|---|---|
//! | `runtime.stencil` | +32 % | +1 % |
//! | `runtime.chain` | +7 % | +1 % |

use super::super::worker::Worker;
use super::Policy;
use super::rest::SHORT_NS;

/// Largest number of ready tasks that a spawner of short tasks leaves to other workers.
const PLENTY: usize = 32;

impl Worker {
    /// Returns `true` if more short tasks are ready here than other workers will take.
    pub(super) fn has_plenty_of_short(&self, throttle: usize) -> bool {
        self.grain_ns.get() < SHORT_NS
            && self.deques.len() >= PLENTY.min(throttle)
            && self.shared.config.policies.has(Policy::HelpShort)
    }
}
