//! Events: work outside the body that a task waits for before it completes.
#![allow(unsafe_code, reason = "gives up the unit of an event")]

use super::run::resolve;
use super::spawn::spawn_ended;
use crate::error::Error;
use crate::group::Group;
use crate::record::{Label, RecordId, record, running};

/// A unit of external work of a task. Before it drops, the task is not complete and a wait for its
/// group does not end.
///
/// Regions are held by guards, not by events: an operation that uses a region takes the guard. An
/// event is for work without a guard.
#[derive(Debug)]
pub struct PendingEvent {
    task: RecordId,
}

impl PendingEvent {
    /// Adds an event to the running task.
    ///
    /// **Errors**: called outside a task; more than 2^28 events and sets of children of one task.
    pub fn of_current_task() -> Result<Self, Error> {
        let task = running::current().ok_or(Error::NotInTask("PendingEvent::of_current_task"))?;
        // The running body holds a unit.
        record(task).open.add_kept("number of pending events of a task")?;
        Ok(PendingEvent { task })
    }

    /// Spawns a task without accesses and body, and returns its only event: for work of a group
    /// outside all tasks.
    ///
    /// **Errors**: those of a spawn.
    pub fn of_group(group: &Group, label: &'static str) -> Result<Self, Error> {
        Ok(PendingEvent { task: spawn_ended(group.inner(), Label::new(label))? })
    }

    /// Resolves the event and fails the task: its successors do not run.
    pub fn fail(self, reason: impl Into<String>) {
        record(self.task).fail(reason.into());
    }
}

impl Drop for PendingEvent {
    fn drop(&mut self) {
        // SAFETY: the unit that the event was made with.
        unsafe { resolve(self.task, 1) };
    }
}
