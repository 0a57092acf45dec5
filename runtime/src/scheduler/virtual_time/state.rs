//! The part of the executor that tasks and programs reach.

use std::sync::Arc;
use std::time::Duration;

use talpf_primitives::{AtomicU64, AtomicUsize, Mutex, Ordering};

use super::changes::Changes;
use super::costs::{CoreTimes, VirtualTime};
use crate::clock::{Clock, ClockHand};

/// A source of events of virtual time outside all tasks, such as a link.
pub trait EventSource: Send + Sync {
    /// Returns the time of the next event, if no task causes another before.
    fn next_ns(&self) -> Option<u64>;

    /// Moves the source to a time, and lets the events happen that are due. Called for every time
    /// at which anything happens.
    fn advance(&self, now_ns: u64);
}

/// State of a runtime in virtual time.
pub(crate) struct VirtualState {
    machine: VirtualTime,
    hand: ClockHand,
    sources: Mutex<Vec<Arc<dyn EventSource>>>,
    source_count: AtomicUsize,
    changes: Changes,
    /// Times that cores have been busy, written by the executor alone.
    tasks_ns: AtomicU64,
    overhead_ns: AtomicU64,
}

impl VirtualState {
    /// Creates the state, and the clock of the runtime.
    pub(crate) fn new(machine: VirtualTime) -> (Clock, Self) {
        let (clock, hand) = Clock::virtual_time();
        let state = VirtualState {
            machine,
            hand,
            sources: Mutex::default(),
            source_count: AtomicUsize::new(0),
            changes: Changes::default(),
            tasks_ns: AtomicU64::new(0),
            overhead_ns: AtomicU64::new(0),
        };
        (clock, state)
    }

    /// Returns the time that work takes.
    #[cold]
    pub(crate) fn cost_ns(&self, kind: &str, amount: u64) -> u64 {
        self.machine.costs.get(kind).map_or(0, |cost| cost.ns(amount))
    }

    pub(crate) fn add_source(&self, source: Arc<dyn EventSource>) {
        let mut sources = self.sources.lock();
        sources.push(source);
        self.source_count.store(sources.len(), Ordering::Release);
    }

    /// Returns what services wait for that nobody announces to them.
    pub(crate) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Returns the times that cores have been busy so far.
    pub(crate) fn core_times(&self) -> CoreTimes {
        let time = |ns: &AtomicU64| Duration::from_nanos(ns.load(Ordering::Relaxed));
        CoreTimes { tasks: time(&self.tasks_ns), overhead: time(&self.overhead_ns) }
    }

    /// Returns the cores of a group.
    pub(in crate::scheduler) fn cores(&self) -> u32 {
        self.machine.cores.max(1)
    }

    /// Returns the time that the runtime takes for a task.
    pub(super) fn task_overhead_ns(&self) -> u64 {
        self.machine.task_overhead_ns
    }

    /// Counts a task that has kept a core.
    pub(super) fn count_task(&self, task_ns: u64, overhead_ns: u64) {
        for (total, ns) in [(&self.tasks_ns, task_ns), (&self.overhead_ns, overhead_ns)] {
            let before = total.load(Ordering::Relaxed);
            total.store(before.saturating_add(ns), Ordering::Relaxed);
        }
    }

    /// Adds the sources that `known` does not have yet.
    pub(super) fn update_sources(&self, known: &mut Vec<Arc<dyn EventSource>>) {
        if known.len() < self.source_count.load(Ordering::Acquire) {
            known.clone_from(&self.sources.lock());
        }
    }

    pub(super) fn hand(&self) -> &ClockHand {
        &self.hand
    }
}
