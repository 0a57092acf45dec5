//! View of what other processes have queued.
#![allow(unsafe_code, reason = "reads what other processes publish between barriers")]

use crate::message_queue::MessageQueue;
use crate::slot_table::SlotTable;
use crate::team::{Team, parity};

/// Shared parts of all processes, between the barrier at the end of a superstep and that of the next.
pub(crate) struct View<'t> {
    team: &'t Team,
    superstep: u64,
}

impl<'t> View<'t> {
    /// Makes a view for a process that has passed the barrier at the end of a superstep.
    pub(crate) fn new(team: &'t Team, superstep: u64) -> Self {
        View { team, superstep }
    }

    #[inline]
    pub(crate) fn queue(&self, process: usize) -> &'t MessageQueue {
        let queue = &self.team.members[process].queues[parity(self.superstep)];
        // SAFETY: The process has come to the barrier at the end of the superstep, and changes this queue again
        // only when all have come to that of the next, or between two barriers of a resize.
        unsafe { queue.read() }
    }

    #[inline]
    pub(crate) fn globals(&self, process: usize) -> &'t SlotTable {
        // SAFETY: The process replaces its table only between two barriers of a resize.
        unsafe { self.team.members[process].globals.read() }
    }
}
