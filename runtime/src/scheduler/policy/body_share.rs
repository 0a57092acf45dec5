//! The time that stolen tasks spend in their bodies.
//!
//! The share separates short tasks that compute, which are worth stealing, from those that wait for
//! each other's cache lines.
//!
//! | figure | cost without the policy | noise |
//! |---|---|---|
//! | `metg.stencil_1d_periodic_32` | +23 % | +1 % |
//! | `metg.stencil_1d_32` | +16 % | -1 % |
//! | `metg.fft_32` | +15 % | +3 % |

use std::cell::Cell;

use super::{Policies, Policy};

/// Number of stolen tasks that are timed together.
pub(super) const SAMPLE: u64 = 8;

/// Time spent in the first bodies since the last measurement.
#[derive(Default)]
pub(super) struct Bodies {
    /// Number of bodies still to time.
    left: Cell<u64>,
    /// Start of the running body, unless it began before the measurement.
    began_ns: Cell<Option<u64>>,
    spent_ns: Cell<u64>,
}

impl Bodies {
    /// Times the next bodies, or none.
    pub(super) fn measure(&self, next: bool) {
        self.left.set(if next { SAMPLE } else { 0 });
        self.began_ns.set(None);
        self.spent_ns.set(0);
    }

    /// Returns `true` if less than two thirds of `task_ns`, the whole time of a task, is spent in
    /// its body.
    pub(super) fn are_small_part_of(&self, task_ns: u64, policies: Policies) -> bool {
        let timed = SAMPLE - self.left.get();
        let body_ns = (self.spent_ns.get() / timed.max(1)).min(task_ns);
        body_ns < 2 * (task_ns - body_ns) || !policies.has(Policy::BodyShare)
    }

    /// Returns `true` if the next body is timed.
    #[inline]
    pub(super) fn times_next(&self) -> bool {
        self.left.get() > 0
    }

    /// Notes that a body begins.
    pub(super) fn begin(&self, now_ns: u64) {
        self.began_ns.set(Some(now_ns));
    }

    /// Notes that a body ends.
    pub(super) fn end(&self, now_ns: u64) {
        if let Some(began_ns) = self.began_ns.take() {
            self.spent_ns.set(self.spent_ns.get() + now_ns.saturating_sub(began_ns));
            self.left.set(self.left.get() - 1);
        }
    }
}
