//! Cancelling the tasks of a group.
//!
//! Workers look at a flag of the group before they enter a body. A task that is suspended would
//! never come by: cancelling wakes those it finds, and a task looks at the flag once more before it
//! suspends. The two are a race, which the fences on both sides decide: either the task sees the
//! flag or the walk sees the task running or suspended.
//!
//! A wait that reports the cancellation takes the flag back, once no task is left.

use std::sync::Arc;

use talpf_primitives::{AtomicU32, Mutex, Ordering, fence};

use super::{Group, GroupInner};
use crate::callback;
use crate::error::Error;
use crate::task::{self, Record, Role, for_each_record, wake_suspended};

type Action = Arc<dyn Fn(&str) + Send + Sync>;

/// The name of an action in reports.
const ACTION: &str = "an action of the cancellation";

/// Whether a group is cancelled, and what for.
#[derive(Default)]
pub(crate) struct Cancellation {
    flag: Flag,
    reason: Mutex<Option<String>>,
    actions: Mutex<Vec<Action>>,
}

#[derive(Default)]
struct Flag(AtomicU32);

impl Flag {
    #[inline]
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// To be followed by a look at the tasks.
    fn set(&self) {
        self.0.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// To be asked by a task that runs and is about to suspend.
    fn is_set_at_last(&self) -> bool {
        fence(Ordering::SeqCst);
        self.is_set()
    }

    fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Group {
    /// Cancels the tasks of the group: until a wait for it ends, those that have not begun do not
    /// run, and async bodies that are suspended, or that suspend, are dropped there. What they hold
    /// and would have held is released. Bodies that run go on to their end and may ask
    /// [`Group::is_cancelled`]. Programs and services of the group are not cancelled; they hear of
    /// it from their waits.
    ///
    /// What a dropped body would have written is undefined: tasks of other groups that depend on it
    /// do not run and name the cancelled task; all others go on. Of several reasons the first
    /// counts.
    ///
    /// **Completion**: returns at once; the next [`Group::wait`] ends with [`Error::Cancelled`]
    /// when every task is complete. **Cost**: a look at every task there is.
    pub fn cancel(&self, reason: impl Into<String>) {
        let cancellation = &self.inner.cancellation;
        let reason = reason.into();
        let mut given = cancellation.reason.lock();
        let reason = given.get_or_insert(reason).clone();
        cancellation.flag.set();
        drop(given);
        for_each_record(|id, task| {
            if task.owner() == id && std::ptr::eq(task.group(), Arc::as_ptr(&self.inner)) {
                wake_suspended(id);
            }
        });
        let actions = cancellation.actions.lock().clone();
        for action in actions {
            if let Err(panic) = callback::call(ACTION, || action(&reason)) {
                self.inner.note_panic_of_action(&panic);
            }
        }
    }

    /// Whether the group was cancelled and no wait has ended since. For bodies that run long.
    ///
    /// **Cost**: one load.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancellation.flag.is_set()
    }

    /// Adds what [`Group::cancel`] does besides, with the reason, each time: end operations that
    /// tasks of the group wait for, for instance. It is called by the thread that cancels. What it
    /// panics with is added to the reason that waits report.
    pub fn on_cancel(&self, action: impl Fn(&str) + Send + Sync + 'static) {
        self.inner.cancellation.actions.lock().push(Arc::new(action));
    }
}

/// Whether the group of the running task is cancelled: see [`Group::cancel`]. Outside a task
/// nothing is.
pub fn is_cancelled() -> bool {
    task::current_group().is_some_and(|group| group.cancellation.flag.is_set())
}

impl GroupInner {
    /// Whether a task of the group must not enter its body.
    #[inline]
    pub(crate) fn cancels(&self, task: &Record) -> bool {
        self.cancellation.flag.is_set() && is_cancelled_with_group(task)
    }

    /// As `cancels`, for a task that is about to suspend.
    #[inline]
    pub(crate) fn cancels_at_suspension(&self, task: &Record) -> bool {
        is_cancelled_with_group(task) && self.cancellation.flag.is_set_at_last()
    }

    /// Adds to the reason of the cancellation that an action of it has panicked.
    #[cold]
    fn note_panic_of_action(&self, panic: &str) {
        match &mut *self.cancellation.reason.lock() {
            Some(reason) => reason.push_str(&format!(" (and {ACTION} panicked: {panic})")),
            // A wait has ended the cancellation meanwhile.
            None => self.note_panic(ACTION, panic),
        }
    }

    /// Why the group is cancelled.
    pub(crate) fn cancel_reason(&self) -> String {
        self.cancellation.reason.lock().clone().unwrap_or_default()
    }

    /// Ends the cancellation, if there is one, with the error that reports it.
    pub(super) fn take_cancellation(&self) -> Option<Error> {
        let mut reason = self.cancellation.reason.lock();
        if !self.cancellation.flag.is_set() {
            return None;
        }
        self.cancellation.flag.clear();
        let reason = reason.take().unwrap_or_default();
        Some(Error::Cancelled { group: self.name.clone(), reason })
    }
}

fn is_cancelled_with_group(task: &Record) -> bool {
    matches!(task.role(), Role::Member | Role::Replayed)
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use super::*;
    use crate::task::{Phase, TaskState};
    use loom::thread;

    #[test]
    fn a_task_that_suspends_while_it_is_cancelled_goes_on() {
        loom::model(|| {
            let shared = loom::sync::Arc::new((TaskState::new(), Flag::default()));
            let generation = shared.0.create();
            let canceller = {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (state, flag) = &*shared;
                    flag.set();
                    state.wake(generation)
                })
            };
            let (state, flag) = &*shared;
            state.set(Phase::Running);
            let suspended = !flag.is_set_at_last() && state.suspend();
            let woken = canceller.join().unwrap();
            assert_eq!(suspended, woken, "whoever was suspended was scheduled, and nobody else");
        });
    }
}
