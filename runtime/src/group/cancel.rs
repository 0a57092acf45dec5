//! Cancellation of the tasks of a group.
//!
//! Workers check a flag of the group before they enter a body. A suspended task would never check
//! it: the cancellation wakes the suspended tasks that it finds, and a task checks the flag once
//! more before it suspends. The two race, which the fences on both sides decide: either the task
//! sees the flag or the cancellation sees the task running or suspended.
//!
//! A wait that reports the cancellation clears the flag, once no task is left.

use std::sync::Arc;

use talpf_primitives::{AtomicU32, Mutex, Ordering, fence};

use super::{Group, GroupInner};
use crate::callback;
use crate::error::Error;
use crate::record::{Record, Role, for_each_record};
use crate::task::{self, wake_suspended};

type Action = Arc<dyn Fn(&str) + Send + Sync>;

/// Name of an action in reports.
const ACTION: &str = "an action of the cancellation";

/// The cancellation of a group, if it is cancelled, and its reason.
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

    /// Sets the flag. The caller then checks all tasks.
    fn set(&self) {
        self.0.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Returns `true` if the flag is set. Called by a running task that is about to suspend.
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
    /// run, and async bodies that are suspended, or that suspend, are dropped there. Their regions
    /// are released. Bodies that run go on to their end and may check [`Group::is_cancelled`].
    /// Mains and services of the group are not cancelled; their waits report the cancellation.
    ///
    /// The regions that a dropped body would have written are poisoned: tasks of other groups that
    /// depend on them do not run and their failures name the cancelled task; all others go on. Of
    /// several reasons the first counts.
    ///
    /// **Completion**: returns at once; the next [`Group::wait`] ends with [`Error::Cancelled`]
    /// when every task is complete. **Cost**: checks every task.
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

    /// Returns `true` if the group was cancelled and no wait has ended since. For bodies that run
    /// long.
    ///
    /// **Cost**: one load.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancellation.flag.is_set()
    }

    /// Adds an action that each [`Group::cancel`] calls with the reason: to end operations that
    /// tasks of the group wait for, for instance. It runs on the cancelling thread. The text of its
    /// panic is added to the reason that waits report.
    pub fn on_cancel(&self, action: impl Fn(&str) + Send + Sync + 'static) {
        self.inner.cancellation.actions.lock().push(Arc::new(action));
    }
}

/// Returns `true` if the group of the running task is cancelled: see [`Group::cancel`]. Outside a
/// task, returns `false`.
pub fn is_cancelled() -> bool {
    task::current_group().is_some_and(|group| group.cancellation.flag.is_set())
}

impl GroupInner {
    /// Returns `true` if a task of the group must not enter its body.
    #[inline]
    pub(crate) fn cancels(&self, task: &Record) -> bool {
        self.cancellation.flag.is_set() && is_cancelled_with_group(task)
    }

    /// Returns the same as `cancels`, for a task that is about to suspend.
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

    /// Returns the reason of the cancellation.
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
    use crate::record::{Phase, TaskState};
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
            assert_eq!(suspended, woken, "the task was scheduled if and only if it was suspended");
        });
    }
}
