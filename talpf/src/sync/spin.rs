//! Looking for arrivals instead of suspending.
//!
//! To suspend a task, find the polling task, look, and wake the task takes about a microsecond, and
//! often ends on another worker, away from what the task has in its cache. What a sync waits for is
//! often there sooner. So a task that waits looks by itself for about that long, but never when its
//! worker would have something else to do, and longer only while another worker is in a task, which
//! may be bringing what is waited for.

use crate::world::{RankState, World};

/// Looks of a task whose worker has nothing else to do: about a microsecond.
const AT_LEAST: u32 = 8;
/// Looks while another worker is in a task.
const AT_MOST: u32 = 64;

impl RankState {
    /// `ready` says whether what is waited for is there.
    #[inline]
    pub(crate) fn poll_while_spare<R>(
        &self,
        world: &World,
        ready: impl Fn() -> Option<R>,
    ) -> Option<R> {
        // A look at a wire takes about as long as all looks at memory.
        let at_most = if world.processes().is_some() { 1 } else { AT_MOST };
        self.poll_at_most(at_most, world, ready)
    }

    /// Looks `at_most` so often.
    #[inline]
    pub(crate) fn poll_at_most<R>(
        &self,
        at_most: u32,
        world: &World,
        ready: impl Fn() -> Option<R>,
    ) -> Option<R> {
        for poll in 1..=at_most {
            self.poll(world);
            let result = ready();
            if result.is_some() {
                return result;
            }
            let goes_on = if poll < AT_LEAST {
                talpf_runtime::worker_has_nothing_else()
            } else {
                talpf_runtime::worker_is_spare()
            };
            if !goes_on {
                break;
            }
            std::hint::spin_loop();
        }
        None
    }
}
