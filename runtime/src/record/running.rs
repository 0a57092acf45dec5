//! The task that a thread runs, with its state since the thread entered the body.

use std::cell::Cell;

use talpf_primitives::thread_local;

use super::RecordId;

struct Running {
    task: Cell<Option<RecordId>>,
    /// Number of accesses that the task has closed.
    closed: Cell<u32>,
    /// `true` while code that belongs to no task interrupts the task.
    interrupted: Cell<bool>,
    /// Task whose actions interrupt the running one, which is not complete before they have ended.
    acts_for: Cell<Option<RecordId>>,
    /// `true` while releases of guards that dropped in an unwinding body, of whatever task, are
    /// deferred.
    has_deferred: Cell<bool>,
}

thread_local! {
    static RUNNING: Running = const {
        Running {
            task: Cell::new(None),
            closed: Cell::new(0),
            interrupted: Cell::new(false),
            acts_for: Cell::new(None),
            has_deferred: Cell::new(false),
        }
    };
}

/// The task that a thread ran before it entered another body, to which it goes back when this
/// drops.
pub(crate) struct Outer {
    task: Option<RecordId>,
    closed: u32,
    interrupted: bool,
}

impl Drop for Outer {
    #[inline]
    fn drop(&mut self) {
        RUNNING.with(|running| {
            running.task.set(self.task);
            running.closed.set(self.closed);
            running.interrupted.set(self.interrupted);
        });
    }
}

/// Makes `task` the one that this thread runs, until the result drops.
#[inline]
pub(crate) fn enter(task: RecordId) -> Outer {
    RUNNING.with(|running| Outer {
        task: running.task.replace(Some(task)),
        closed: running.closed.replace(0),
        interrupted: running.interrupted.replace(false),
    })
}

/// Returns the task that this thread runs.
#[inline]
pub(crate) fn current() -> Option<RecordId> {
    RUNNING.with(|running| running.task.get().filter(|_| !running.interrupted.get()))
}

/// Returns the innermost task that this thread is inside, which may be interrupted.
pub(crate) fn innermost() -> Option<RecordId> {
    RUNNING.with(|running| running.task.get())
}

/// Returns the task whose actions this thread runs.
pub(crate) fn acts_for() -> Option<RecordId> {
    RUNNING.with(|running| running.acts_for.get())
}

/// Calls `work`, which belongs to no task, on a thread that may be in the body of one; `acts_for`
/// is not complete before it returns. Releases of guards that drop there while that body unwinds
/// are deferred with its own.
pub(crate) fn outside_tasks<R>(acts_for: Option<RecordId>, work: impl FnOnce() -> R) -> R {
    let outer = RUNNING
        .with(|running| (running.interrupted.replace(true), running.acts_for.replace(acts_for)));
    let result = work();
    RUNNING.with(|running| {
        running.interrupted.set(outer.0);
        running.acts_for.set(outer.1);
    });
    result
}

/// Counts a closed access of `task` if this thread is inside it. Returns `false` otherwise.
#[inline]
pub(crate) fn count_closed(task: RecordId) -> bool {
    RUNNING.with(|running| {
        let runs = running.task.get() == Some(task);
        if runs {
            running.closed.set(running.closed.get() + 1);
        }
        runs
    })
}

/// Takes the number of accesses that the running task has closed and that are not counted yet.
#[inline]
pub(crate) fn take_closed() -> u32 {
    RUNNING.with(|running| running.closed.replace(0))
}

/// Notes that releases are deferred, or are not any more.
pub(crate) fn set_deferred(has_deferred: bool) {
    RUNNING.with(|running| running.has_deferred.set(has_deferred));
}

/// Returns `true` while releases are deferred.
#[inline]
pub(crate) fn has_deferred() -> bool {
    RUNNING.with(|running| running.has_deferred.get())
}
