//! Spin, then suspend: a task that waits polls for arrivals before it suspends.
//!
//! To suspend a task, find the polling task, poll, and wake the task takes about a microsecond, and
//! often ends on another worker, away from what the task has in its cache. Arrivals often come
//! sooner. So a task that waits polls for about that long, but never when its worker has something
//! else to do, and longer only while another worker is in a task, which may cause the arrivals.

use super::{Engine, LocalPeer};

/// Polls of a task whose worker has nothing else to do: about a microsecond.
const AT_LEAST: u32 = 8;
/// Polls while another worker is in a task.
const AT_MOST: u32 = 64;

impl LocalPeer {
    /// Returns the largest number of polls of a task that waits.
    #[inline]
    pub(crate) fn spare_polls(&self) -> u32 {
        // A poll of a wire takes about as long as all polls of memory.
        if self.has_wire { 1 } else { AT_MOST }
    }
}

/// Polls an engine, `at_most` times and while the worker has nothing else to do, until `ready`
/// returns a result.
#[inline]
pub(crate) fn poll_at_most<R>(
    engine: &dyn Engine,
    at_most: u32,
    ready: impl Fn() -> Option<R>,
) -> Option<R> {
    for poll in 1..=at_most {
        engine.poll();
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
