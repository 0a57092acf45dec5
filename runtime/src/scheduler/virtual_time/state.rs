//! The part of the executor that tasks and programs reach.

use std::sync::Arc;

use talpf_primitives::Mutex;

use super::costs::VirtualTime;
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
}

impl VirtualState {
    /// Creates the state, and the clock of the runtime.
    pub(crate) fn new(machine: VirtualTime) -> (Clock, Self) {
        let (clock, hand) = Clock::virtual_time();
        (clock, VirtualState { machine, hand, sources: Mutex::default() })
    }

    /// Returns the time that work takes.
    #[cold]
    pub(crate) fn cost_ns(&self, kind: &str, amount: u64) -> u64 {
        self.machine.costs.get(kind).map_or(0, |cost| cost.ns(amount))
    }

    pub(crate) fn add_source(&self, source: Arc<dyn EventSource>) {
        self.sources.lock().push(source);
    }

    /// Returns the cores of a group.
    pub(super) fn cores(&self) -> u32 {
        self.machine.cores.max(1)
    }

    pub(super) fn sources(&self) -> Vec<Arc<dyn EventSource>> {
        self.sources.lock().clone()
    }

    pub(super) fn hand(&self) -> &ClockHand {
        &self.hand
    }
}
