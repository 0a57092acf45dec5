//! The errors of the runtime, with the values needed to act.

use std::fmt;
use std::sync::Arc;

use crate::data::{ArrayLabel, Mode, Rect};

/// An error of the runtime.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A region reaches beyond its array.
    #[error("region {region} lies outside {array}")]
    RegionOutOfBounds {
        /// The region.
        region: Rect,
        /// The array.
        array: ArrayLabel,
    },
    /// Two accesses of one task overlap and at least one of them writes.
    #[error("task `{label}` declares {first_mode} {first} and {second_mode} {second} of {array}")]
    OverlappingAccesses {
        /// The task's label.
        label: String,
        /// The array of both.
        array: ArrayLabel,
        /// The access declared first.
        first: Rect,
        /// The mode of the first access.
        first_mode: Mode,
        /// The access that overlaps it.
        second: Rect,
        /// The mode of the second access.
        second_mode: Mode,
    },
    /// A child declares a region that its parent has not lent, or another task declares a lent
    /// region.
    #[error("task `{label}` declares {mode} {region} of {array}, which is not lent to it")]
    NotLent {
        /// The task's label.
        label: String,
        /// The array.
        array: ArrayLabel,
        /// The declared region.
        region: Rect,
        /// The mode.
        mode: Mode,
    },
    /// A task declares an array of another runtime.
    #[error("task `{label}` of {group} declares {array}, which belongs to another runtime")]
    OtherRuntime {
        /// The task's label.
        label: &'static str,
        /// The task's group.
        group: String,
        /// The array.
        array: ArrayLabel,
    },
    /// A replayed task uses a feature that only spawned tasks have.
    #[error("task `{label}` is replayed and cannot have {what}")]
    Replayed {
        /// The task's label.
        label: String,
        /// The feature.
        what: &'static str,
    },
    /// A size or number is out of range.
    #[error("{what} is {value}, expected {} {limit}", bound(*value, *limit))]
    Size {
        /// Name of the size.
        what: &'static str,
        /// The given value.
        value: usize,
        /// The smallest or largest possible value.
        limit: usize,
    },
    /// A task failed; its successors did not run (R4).
    #[error("{0}")]
    TaskFailed(Arc<Failure>),
    /// The group was cancelled: tasks of it that had not begun did not run.
    #[error("{group} was cancelled: {reason}")]
    Cancelled {
        /// The group.
        group: String,
        /// The reason given to [`Group::cancel`](crate::Group::cancel).
        reason: String,
    },
    /// No task can run and some wait. The text lists the tasks and the accesses that they wait for.
    #[error("nothing can run:\n{0}")]
    Hang(Arc<str>),
    /// A call was made after the runtime had shut down.
    #[error("the runtime has shut down")]
    ShutDown,
    /// A call that blocks its thread was made on a worker, of whichever runtime, or in the actions
    /// of a task.
    #[error("`{call}` blocks its thread and cannot be called in task `{task}`: await instead")]
    BlockingInTask {
        /// The call.
        call: &'static str,
        /// The label of the task.
        task: &'static str,
    },
    /// A call that needs a running task was made outside one.
    #[error("`{0}` needs a running task")]
    NotInTask(&'static str),
    /// The operating system refused a thread.
    #[error("cannot start worker {worker} of {workers}: {reason}")]
    Spawn {
        /// Number of the worker.
        worker: usize,
        /// Number of workers in the configuration.
        workers: usize,
        /// Text of the system's error.
        reason: String,
    },
}

/// Returns the word before the limit that a value is beyond.
fn bound(value: usize, limit: usize) -> &'static str {
    if value < limit { "at least" } else { "at most" }
}

/// The failure of a task: it panicked or reported an error itself, or a task before it did.
#[derive(Debug)]
pub struct Failure {
    /// The label of the task; empty for code of the program that runs in no task, such as a waker.
    pub label: String,
    /// The labels of the tasks that the task is nested in, from its parent on.
    pub inside: Vec<String>,
    /// The group of the task.
    pub group: String,
    /// Text of the panic or error; `None` for a task that did not run because of `upstream`.
    pub reason: Option<String>,
    /// `true` if the task was cancelled with its group, for `reason`.
    pub cancelled: bool,
    /// The task whose failure kept this one from running.
    pub upstream: Option<Arc<Failure>>,
    /// Number of tasks between this one and the first of the chain.
    pub(crate) depth: usize,
}

/// Number of tasks that a text names at either end of a long chain.
const NAMED: usize = 8;

impl Error {
    /// Returns the error that the handle of a task with this failure gives.
    pub(crate) fn of_task(failure: Arc<Failure>) -> Self {
        let first = failure.chain().last().filter(|first| first.cancelled);
        match first.filter(|first| first.group == failure.group) {
            Some(Failure { group, reason, .. }) => {
                let reason = reason.clone().unwrap_or_default();
                Error::Cancelled { group: group.clone(), reason }
            }
            None => Error::TaskFailed(failure),
        }
    }
}

impl Failure {
    /// Creates a failure of code of the program that runs in no task.
    pub(crate) fn outside_tasks(group: &str, reason: String) -> Self {
        Failure {
            label: String::new(),
            inside: Vec::new(),
            group: group.to_owned(),
            reason: Some(reason),
            cancelled: false,
            upstream: None,
            depth: 0,
        }
    }

    /// Returns the failures from this one back to the first of the chain.
    pub fn chain(&self) -> impl Iterator<Item = &Failure> {
        std::iter::successors(Some(self), |failure| failure.upstream.as_deref())
    }
}

/// Drops the chain link by link: otherwise each link would drop the next one inside itself.
impl Drop for Failure {
    fn drop(&mut self) {
        let mut next = self.upstream.take();
        while let Some(failure) = next {
            next = Arc::into_inner(failure).and_then(|mut last| last.upstream.take());
        }
    }
}

/// Shows the chain from this task to the first one; of a long chain both ends.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, failure) in self.chain().enumerate() {
            if nth >= NAMED && failure.depth >= NAMED {
                continue;
            }
            if nth > NAMED && failure.depth + 1 == NAMED {
                write!(f, " because {} more did not run", nth - NAMED)?;
            }
            if nth > 0 {
                f.write_str(" because ")?;
            }
            if !failure.label.is_empty() {
                write!(f, "task `{}`", failure.label)?;
                failure.inside.iter().try_for_each(|parent| write!(f, " in `{parent}`"))?;
                f.write_str(" of ")?;
            }
            f.write_str(&failure.group)?;
            match &failure.reason {
                Some(reason) if failure.cancelled => write!(f, " was cancelled: {reason}")?,
                Some(reason) => write!(f, " failed: {reason}")?,
                None => f.write_str(" did not run")?,
            }
        }
        Ok(())
    }
}
