//! Spin, then suspend: a task that waits polls for a moment before it suspends.
//!
//! To suspend a task, find the task of the service, poll, and wake the first task takes about a
//! microsecond, and often ends on another worker, away from the task's data in the cache. Arrivals
//! often come sooner. So a task that waits polls for about that long, but never when its worker has
//! something else to do, and longer only while another worker is in a task, which may cause the
//! arrivals.

use super::timing::SPARE_POLLS;
use crate::scheduler::{worker_has_nothing_else, worker_is_spare};

/// Calls `poll`, `at_most` times and while the worker has nothing else to do, until `ready` returns
/// a result.
#[inline]
pub fn poll_while_spare<R>(
    at_most: u32,
    poll: impl Fn(),
    ready: impl Fn() -> Option<R>,
) -> Option<R> {
    for count in 1..=at_most {
        poll();
        let result = ready();
        if result.is_some() {
            return result;
        }
        let goes_on =
            if count < SPARE_POLLS { worker_has_nothing_else() } else { worker_is_spare() };
        if !goes_on {
            break;
        }
        std::hint::spin_loop();
    }
    None
}
