//! Hangs that are certain: nothing in the process moves, and nothing outside can move it.
//!
//! The first worker looks while it is parked, after a few milliseconds and then less and less often,
//! unless something waits for a time. A hang is certain if two looks one after the other see the
//! same: all workers parked, no task in a queue, no timer, nobody who waits for idleness, somebody
//! who waits, every task and every blocked thread suspended on something of the runtime, no task
//! begun in between; and all other threads of the process asleep until a thread wakes them
//! (`scheduler/census.rs`). Then the one time between the looks is one at which all threads waited
//! for each other.
//!
//! Whatever a thread holds - a guard, an event, a waker, a group to spawn in - it can only use if it
//! goes on. So nothing needs to know who holds what, and no counter is kept for this.
//!
//! Never certain, and found by the period: workers that spin instead of parking, services that poll
//! by the clock, threads that sleep or wait for files, programs with handlers of signals or a judge,
//! two runtimes in one process, systems other than Linux.

use super::{Hang, is_stuck};
use crate::dump::Dump;
use crate::scheduler::{Census, Shared};

/// The findings of one look at a process in which nothing moves.
#[derive(PartialEq, Eq)]
pub(crate) struct Stillness {
    activity: u64,
    others: Census,
}

impl Stillness {
    fn look(shared: &Shared) -> Option<Self> {
        let activity = shared.activity();
        // First: what a thread has done that has ended since is seen below.
        let others = shared.other_threads()?;
        let still = shared.is_at_rest() && is_stuck(shared, false);
        (still && shared.activity() == activity).then_some(Stillness { activity, others })
    }
}

impl Hang {
    /// Looks once more, by a worker that is parked, after a look that has seen `before`. True if the
    /// runtime hangs for certain.
    pub(crate) fn is_certain(&self, shared: &Shared, before: &mut Option<Stillness>) -> bool {
        if self.judge.get().is_some() {
            return false;
        }
        let now = Stillness::look(shared);
        let same = now.is_some() && now == *before;
        *before = now;
        same
    }

    /// Reports a hang that is certain.
    pub(crate) fn tell_certain(&self, shared: &Shared) {
        self.tell(shared, Dump::take(shared).to_string());
    }
}
