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

use super::GroupInner;
use crate::error::Error;
use crate::record::{Record, Role};

pub(super) type Action = Arc<dyn Fn(&str) + Send + Sync>;

/// Name of an action in reports.
pub(super) const ACTION: &str = "an action of the cancellation";

/// The cancellation of a group, if it is cancelled, and its reason.
#[derive(Default)]
pub(crate) struct Cancellation {
    flag: Flag,
    reason: Mutex<Option<String>>,
    actions: Mutex<Vec<Action>>,
}

impl Cancellation {
    /// Cancels the group, and returns the first reason that was given. The caller then wakes the
    /// suspended tasks.
    pub(super) fn begin(&self, reason: String) -> String {
        let mut given = self.reason.lock();
        let reason = given.get_or_insert(reason).clone();
        self.flag.set();
        reason
    }

    #[inline]
    pub(super) fn has_begun(&self) -> bool {
        self.flag.is_set()
    }

    pub(super) fn add_action(&self, action: Action) {
        self.actions.lock().push(action);
    }

    pub(super) fn actions(&self) -> Vec<Action> {
        self.actions.lock().clone()
    }
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
    pub(super) fn note_panic_of_action(&self, panic: &str) {
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

    /// Returns the error that reports the cancellation, if there is one.
    pub(super) fn cancellation(&self) -> Option<Error> {
        let cancelled =
            || Error::Cancelled { group: self.name().to_owned(), reason: self.cancel_reason() };
        self.cancellation.flag.is_set().then(cancelled)
    }

    /// Ends the cancellation, if there is one, with the error that reports it.
    pub(super) fn take_cancellation(&self) -> Option<Error> {
        let mut reason = self.cancellation.reason.lock();
        if !self.cancellation.flag.is_set() {
            return None;
        }
        self.cancellation.flag.clear();
        let reason = reason.take().unwrap_or_default();
        Some(Error::Cancelled { group: self.name().to_owned(), reason })
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
