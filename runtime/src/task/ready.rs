//! Actions of a task when it becomes ready, before it is queued.
//!
//! The type of a declaration says whether it has actions, so that tasks without them pay nothing.
//! Actions are stored in front of the body and are removed by the thread that has followed the last
//! edge to the task: it owns the task then. While they run, and as long as a [`HeldBack`] is left,
//! the units of `pending` are theirs; the thread that takes the last one goes on with the task.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::body::Prepared;
use super::{failure, run};
use crate::callback;
use crate::dependency::acquire_tile_locks;
use crate::group::GroupInner;
use crate::record::{Body, RecordId, record, running};

/// The part of a declaration before its body: nothing, or [`Actions`].
pub trait Before: Sized {
    /// `true` for [`Actions`].
    const ACTS: bool;
    /// Adds an action at the end.
    #[doc(hidden)]
    fn and(self, action: Action) -> Actions;
    /// Puts the actions in front of `body`.
    #[doc(hidden)]
    fn before<B: Body>(self, body: B) -> impl Body;
}

impl Before for () {
    const ACTS: bool = false;

    #[inline]
    fn and(self, action: Action) -> Actions {
        Actions(smallvec![action])
    }

    #[inline]
    fn before<B: Body>(self, body: B) -> impl Body {
        body
    }
}

/// An action that several tasks have in common, each by a handle: see
/// [`TaskBuilder::on_ready_of`](crate::TaskBuilder::on_ready_of).
pub trait OnReady: Send + Sync + 'static {
    /// Acts for a task that has become ready.
    fn act(self: Arc<Self>, ready: &Ready);

    /// Takes note of a task for which the action will not act: it has failed or was cancelled before, or
    /// was never spawned.
    fn give_up(&self) {}
}

/// An action of a task.
#[doc(hidden)]
pub enum Action {
    Own(Box<dyn FnOnce(&Ready) + Send>),
    Common(CommonAction),
}

/// An action in common until one task has taken it, or given it up.
#[doc(hidden)]
pub struct CommonAction(Option<Arc<dyn OnReady>>);

impl CommonAction {
    pub(super) fn new(action: Arc<dyn OnReady>) -> Self {
        CommonAction(Some(action))
    }
}

impl Drop for CommonAction {
    fn drop(&mut self) {
        if let Some(action) = self.0.take() {
            action.give_up();
        }
    }
}

impl Action {
    fn act(self, ready: &Ready) {
        match self {
            Action::Own(action) => action(ready),
            Action::Common(mut action) => {
                if let Some(action) = action.0.take() {
                    action.act(ready);
                }
            }
        }
    }
}

/// Actions of a task, in the order they were given. Usually one.
pub struct Actions(SmallVec<[Action; 1]>);

impl Before for Actions {
    const ACTS: bool = true;

    fn and(mut self, action: Action) -> Actions {
        self.0.push(action);
        self
    }

    #[inline]
    fn before<B: Body>(self, body: B) -> impl Body {
        Prepared::new(self, body)
    }
}

/// A task that has become ready, as an action of [`on_ready`](crate::TaskBuilder::on_ready) gets
/// it.
#[derive(Debug)]
pub struct Ready {
    task: RecordId,
}

impl Ready {
    /// Keeps the task from being queued until the returned value drops. Cancelling its group does
    /// not end that. A hang report names tasks that are held back. A task that is held back more
    /// than 2^28 times fails.
    pub fn hold_back(&self) -> HeldBack {
        // The actions have a unit themselves.
        let held = record(self.task).pending.add_kept("number of times a task is held back");
        let task = held.map(|()| self.task);
        HeldBack { task: task.map_err(|full| failure::fail(self.task, full.to_string())).ok() }
    }

    /// Changes the priority of the task: see
    /// [`TaskBuilder::priority`](crate::TaskBuilder::priority).
    pub fn set_priority(&self, priority: i32) {
        let task = record(self.task);
        task.set_urgency(task.urgency().with_priority(priority));
    }

    /// Changes the cost of the task: see [`TaskBuilder::cost`](crate::TaskBuilder::cost).
    ///
    /// **Units**: nanoseconds.
    pub fn set_cost(&self, cost_ns: u64) {
        let task = record(self.task);
        task.set_urgency(task.urgency().with_cost(cost_ns));
    }
}

/// A hold that keeps a task, which is otherwise ready, from being queued until it drops, on any
/// thread.
#[derive(Debug)]
#[must_use = "the task is queued when this drops"]
pub struct HeldBack {
    /// `None` for one too many, whose task has failed and waits only for the others.
    task: Option<RecordId>,
}

impl HeldBack {
    /// Fails the task, and then lets go of it: it does not run, and what it would have written is
    /// poisoned.
    pub fn fail(self, reason: impl Into<String>) {
        if let Some(task) = self.task {
            failure::fail(task, reason.into());
        }
    }
}

impl Drop for HeldBack {
    fn drop(&mut self) {
        if let Some(task) = self.task
            && record(task).pending.take(1)
            && go_on(task)
        {
            run::release_ready(task);
        }
    }
}

/// Takes the steps of a task of `group` that nothing earlier holds back. Returns `false` if the
/// task is held back or waits for a tile lock: the thread that ends that goes on with it.
#[cold]
pub(super) fn take_steps(group: &GroupInner, id: RecordId) -> bool {
    let task = record(id);
    if task.acts() {
        task.set_may_be_held();
        task.pending.set(1);
        if !task.has_failed() && !group.cancels(task) {
            act(id);
        }
        if !task.pending.take(1) {
            return false;
        }
    }
    go_on(id)
}

fn go_on(id: RecordId) -> bool {
    !record(id).needs_tile_locks() || acquire_tile_locks(id)
}

fn act(id: RecordId) {
    let Some(Actions(actions)) = run::take_actions(id) else {
        return;
    };
    for action in actions {
        // After a failure the others are dropped.
        let act =
            || if failure::has_failed(id) { drop(action) } else { action.act(&Ready { task: id }) };
        if let Err(reason) = running::outside_tasks(Some(id), || callback::call("an action", act)) {
            failure::fail(id, reason);
        }
    }
}
