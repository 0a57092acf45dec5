//! The seam between dependencies and those who run tasks.
#![allow(unsafe_code, reason = "declares functions with contracts")]

use crate::record::RecordId;

/// The receiver of tasks that become ready, or complete, as accesses close. Dependencies call it and
/// know no queue; all calls are of a type that has no values, so they cost what calls of functions
/// cost.
pub(crate) trait ReadySink {
    /// Goes on with a task whose last edge, from the task `by`, has been followed: it may have steps
    /// before it is queued.
    fn ready(task: RecordId, by: RecordId);

    /// Queues a task that has taken all its steps, after the task `by` handed it a tile lock.
    fn queue(task: RecordId, by: RecordId);

    /// Takes `units` from the counter of a task's completion.
    ///
    /// # Safety
    /// The units are the caller's, which gives them up: objects that they kept alive may be gone.
    unsafe fn resolve(task: RecordId, units: u32);

    /// Takes the unit of a closed access.
    ///
    /// # Safety
    /// As for [`ReadySink::resolve`], of the unit of the access.
    unsafe fn resolve_access(task: RecordId);
}
