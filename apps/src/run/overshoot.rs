//! Precision of virtual cores in real time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::Serialize;
use talpf_traces::counted;

/// Counter of how much later than asked tasks have given their virtual cores back. Clones share the
/// counts.
#[derive(Clone, Debug, Default)]
pub struct Overshoot {
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    tasks: AtomicU64,
    held_ns: AtomicU64,
    late_ns: AtomicU64,
    largest_ns: AtomicU64,
}

/// Sums of an [`Overshoot`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OvershootSums {
    /// Number of tasks that have held a core.
    pub tasks: u64,
    /// Time for which the tasks were to hold their cores. **Units**: nanoseconds.
    pub held_ns: u64,
    /// Time by which they gave them back late. **Units**: nanoseconds.
    pub late_ns: u64,
    /// Largest part of that of one task. **Units**: nanoseconds.
    pub largest_ns: u64,
}

impl Overshoot {
    /// Counts a task that was to hold a core for `held_ns`, and gave it back `late_ns` later.
    pub(super) fn add(&self, held_ns: u64, late_ns: u64) {
        let Counts { tasks, held_ns: held, late_ns: late, largest_ns } = &*self.counts;
        tasks.fetch_add(1, Relaxed);
        held.fetch_add(held_ns, Relaxed);
        late.fetch_add(late_ns, Relaxed);
        largest_ns.fetch_max(late_ns, Relaxed);
    }

    /// Returns the sums so far.
    pub fn sums(&self) -> OvershootSums {
        let Counts { tasks, held_ns, late_ns, largest_ns } = &*self.counts;
        let [tasks, held_ns, late_ns, largest_ns] =
            [tasks, held_ns, late_ns, largest_ns].map(|count| count.load(Relaxed));
        OvershootSums { tasks, held_ns, late_ns, largest_ns }
    }
}

impl OvershootSums {
    /// Share from which on the order of events is more that of the workers than that of the cores.
    const MUCH: f64 = 0.1;

    /// Returns the time by which cores were given back late, for each unit of the time that they were to be
    /// held.
    pub fn share(&self) -> f64 {
        self.late_ns as f64 / self.held_ns.max(1) as f64
    }
}

impl fmt::Display for OvershootSums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [held, late, largest] =
            [self.held_ns, self.late_ns, self.largest_ns].map(|ns| ns as f64 / 1e9);
        let (tasks, percent) = (self.tasks, 100.0 * self.share());
        let advice = if self.share() > Self::MUCH { ": dilate more" } else { "" };
        write!(
            f,
            "{late:.6} s of {held:.6} s in {} ({percent:.1} %{advice}), largest {largest:.6} s",
            counted(tasks, "task")
        )
    }
}
