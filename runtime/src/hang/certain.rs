//! Certain hangs: nothing in the process moves, and nothing outside can end that.
//!
//! The first worker checks while it is parked, after a few milliseconds and then less and less
//! often, unless a timer is pending. A hang is certain if two checks in sequence find the same: all
//! workers parked, no task in a queue, no timer, no wait for idleness, some task or thread waiting,
//! every task and every blocked thread suspended on something of the runtime, no task begun in
//! between; and all other threads of the process asleep until a thread wakes them
//! (`scheduler/census.rs`). Then at one time between the checks all threads waited for each other.
//!
//! A thread can use a guard, an event, a waker or a group that it holds only if it goes on. So the
//! check needs no list of their holders, and no counter.
//!
//! A hang is not certain, and is found after the configured time, with workers that spin instead of
//! parking, services that poll by the clock, threads that sleep or wait for files, signal handlers,
//! a judge, two runtimes in one process, and on systems other than Linux.

use super::watch::is_stuck;
use crate::scheduler::{Shared, Stillness};

fn observe(shared: &Shared) -> Option<Stillness> {
    let activity = shared.activity();
    // First, so that the effects of a thread that has ended since are seen below.
    let others = shared.other_threads()?;
    let still = shared.is_at_rest() && is_stuck(shared, false);
    (still && shared.activity() == activity).then_some(Stillness { activity, others })
}

/// Implements [`Watchdog::is_certain`](crate::scheduler::Watchdog::is_certain).
pub(super) fn is_certain(shared: &Shared, before: &mut Option<Stillness>) -> bool {
    if shared.hang.judge.get().is_some() {
        return false;
    }
    let now = observe(shared);
    let same = now.is_some() && now == *before;
    *before = now;
    same
}
