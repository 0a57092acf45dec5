//! What can go wrong, with the values needed to act.

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
        /// What was asked for.
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
        /// Its mode.
        first_mode: Mode,
        /// The access that overlaps it.
        second: Rect,
        /// Its mode.
        second_mode: Mode,
    },
    /// A child declares something that its parent has not lent it, or a task that is no child
    /// something that is lent.
    #[error("task `{label}` declares {mode} {region} of {array}, which is not lent to it")]
    NotLent {
        /// The task's label.
        label: String,
        /// The array.
        array: ArrayLabel,
        /// What it declares.
        region: Rect,
        /// The mode.
        mode: Mode,
    },
    /// A task declares something of another runtime.
    #[error("task `{label}` of {group} declares {array}, which belongs to another runtime")]
    OtherRuntime {
        /// The task's label.
        label: &'static str,
        /// The task's group.
        group: String,
        /// The array.
        array: ArrayLabel,
    },
    /// A task of a graph that is replayed uses what only tasks have that are spawned.
    #[error("task `{label}` is replayed and cannot have {what}")]
    Replayed {
        /// The task's label.
        label: String,
        /// What it uses.
        what: &'static str,
    },
    /// An array or one of its tiles has a size the runtime cannot hold.
    #[error("{what} is {value}, the limit is {limit}")]
    Size {
        /// Which size.
        what: &'static str,
        /// What was given.
        value: usize,
        /// The smallest or largest that is possible.
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
        /// What [`Group::cancel`](crate::Group::cancel) was given.
        reason: String,
    },
    /// Nothing can run and something waits. The text says what waits for what.
    #[error("nothing can run:\n{0}")]
    Hang(Arc<str>),
    /// The runtime was asked for something after it shut down.
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
        /// Which worker.
        worker: usize,
        /// How many were asked for.
        workers: usize,
        /// What the system said.
        reason: String,
    },
}

/// Why a task failed: it panicked or reported an error itself, or a task before it did.
#[derive(Debug)]
pub struct Failure {
    /// The label of the task; empty for code of the program that runs in no task, such as a waker.
    pub label: String,
    /// The labels of the tasks that it is nested in, from its parent on.
    pub inside: Vec<String>,
    /// The group of the task.
    pub group: String,
    /// What its body said; `None` when it never ran because of `upstream`.
    pub reason: Option<String>,
    /// Whether it was cancelled with its group; `reason` says why.
    pub cancelled: bool,
    /// The task whose failure kept this one from running.
    pub upstream: Option<Arc<Failure>>,
    /// Tasks between this one and the one that began it.
    pub(crate) depth: usize,
}

/// Tasks that a text names at either end of a long chain.
const NAMED: usize = 8;

impl Error {
    /// What the handle of a task with this failure says.
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
    /// Of code of the program that runs in no task.
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

    /// The failed tasks from this one back to the one that began it.
    pub fn chain(&self) -> impl Iterator<Item = &Failure> {
        std::iter::successors(Some(self), |failure| failure.upstream.as_deref())
    }
}

/// Long chains are taken apart link by link: each would drop the next one inside itself.
impl Drop for Failure {
    fn drop(&mut self) {
        let mut next = self.upstream.take();
        while let Some(failure) = next {
            next = Arc::into_inner(failure).and_then(|mut last| last.upstream.take());
        }
    }
}

/// The chain from this task to the one that began it; of a long one both ends.
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
