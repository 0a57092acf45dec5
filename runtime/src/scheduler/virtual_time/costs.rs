//! The virtual machine: its cores, what work costs on them, and where their time has gone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Price of a kind of work: a fixed time for each task, and one for each unit of its amount.
///
/// **Units**: picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Time of a task without any work.
    pub fixed_ps: u64,
    /// Time of a unit of work.
    pub unit_ps: u64,
}

impl Cost {
    /// Returns the time of `amount` units in nanoseconds, rounded up.
    ///
    /// ```
    /// use talpf_runtime::Cost;
    ///
    /// let cost = Cost { fixed_ps: 500, unit_ps: 250 };
    /// assert_eq!(cost.ns(0), 1);
    /// assert_eq!(cost.ns(1_000), 251);
    /// assert_eq!(cost.ns(u64::MAX), u64::MAX / 4 + 2);
    /// ```
    pub fn ns(self, amount: u64) -> u64 {
        let ps = u128::from(self.fixed_ps) + u128::from(self.unit_ps) * u128::from(amount);
        u64::try_from(ps.div_ceil(1_000)).unwrap_or(u64::MAX)
    }
}

/// The virtual machine of a run in virtual time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualTime {
    /// Cores of each group, at least 1.
    pub cores: u32,
    /// Time that the runtime takes for a task that is queued, to declare, schedule and complete it:
    /// on the core that runs the task, before its body.
    ///
    /// **Units**: nanoseconds.
    pub task_overhead_ns: u64,
    /// Costs by kind of work. Work of another kind takes no time.
    pub costs: Arc<BTreeMap<String, Cost>>,
}

/// Times that the virtual cores of all groups together have been busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreTimes {
    /// Time in bodies of tasks.
    pub tasks: Duration,
    /// Time that the runtime has taken for tasks.
    pub overhead: Duration,
}
