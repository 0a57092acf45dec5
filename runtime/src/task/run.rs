//! Running of tasks, and the steps from one state to the next.
#![allow(unsafe_code, reason = "runs the body of the task it has taken")]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::thread;

use talpf_primitives::{assert_nothing_held, thread_local};

use super::children::Nest;
use super::ready::{Actions, take_steps};
use super::{SPAWNING, failure, waker};
use crate::access::{OpenAccess, release_unheld};
use crate::error::Error;
use crate::group::GroupInner;
use crate::record::{Accesses, Phase, Record, RecordId, Role, record};
use crate::replay;
use crate::scheduler::{self, Reason, Shared};

/// The task that a thread runs, with its state since the thread entered the body.
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
struct Outer {
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

impl Running {
    #[inline]
    fn enter(&self, task: RecordId) -> Outer {
        Outer {
            task: self.task.replace(Some(task)),
            closed: self.closed.replace(0),
            interrupted: self.interrupted.replace(false),
        }
    }
}

/// Returns the task that this thread runs.
#[inline]
pub(crate) fn current() -> Option<RecordId> {
    RUNNING.with(|running| running.task.get().filter(|_| !running.interrupted.get()))
}

/// Returns `true` if this thread is inside a task, which may be interrupted.
pub(super) fn is_inside_task() -> bool {
    RUNNING.with(|running| running.task.get().is_some())
}

/// Returns the group of the task that this thread runs.
pub(crate) fn current_group() -> Option<&'static GroupInner> {
    // SAFETY: the task that runs has a unit for its body.
    current().map(|task| unsafe { GroupInner::of_live_task(record(task)) })
}

/// Returns `true` if this thread works for a task of the runtime that is not complete: it is in the
/// task's body, or in its actions.
pub(crate) fn is_for_task_of(shared: &Arc<Shared>) -> bool {
    let acts_for = || RUNNING.with(|running| running.acts_for.get());
    current().or_else(acts_for).is_some_and(|task| {
        // SAFETY: a task that runs has a unit for its body, and none is complete before its actions
        // have ended.
        let group = unsafe { GroupInner::of_live_task(record(task)) };
        Arc::ptr_eq(&group.shared, shared)
    })
}

/// Refuses `call`, which is about to block its thread, in a task. Also for calls that set things up
/// before they block.
///
/// **Errors**: [`Error::BlockingInTask`], on a worker of any runtime or in the actions of a task.
pub fn check_blocking(call: &'static str) -> Result<(), Error> {
    let task = RUNNING.with(|running| running.acts_for.get().or(running.task.get()));
    match task.map(|task| record(task).label().text()) {
        Some(task) => Err(Error::BlockingInTask { call, task }),
        None if scheduler::on_worker() => Err(Error::BlockingInTask { call, task: "none" }),
        None => Ok(()),
    }
}

/// Notes that a release is deferred.
pub(super) fn note_deferred() {
    RUNNING.with(|running| running.has_deferred.set(true));
}

/// Runs a ready or woken task until its body ends or awaits.
#[inline]
pub(crate) fn run(task: RecordId) {
    let running = record(task);
    let _outer = RUNNING.with(|running| running.enter(task));
    // SAFETY: a task that is in a queue has a unit for its body.
    let group = unsafe { GroupInner::of_live_task(running) };
    let begins = || running.state.phase().1 == Phase::Created;
    let replayed = running.role() == Role::Replayed && begins();
    let replayed_task = if replayed { replay::begin(running) } else { None };
    if replayed && replayed_task.is_none() || running.has_failed() && begins() {
        return skip(task);
    }
    if group.cancels(running) {
        return cancel(task);
    }
    let outcome = if let Some(replayed_task) = replayed_task {
        run_body(task, || replayed_task.call())
    } else {
        // SAFETY: a task is in one queue at most, so taking it from there makes it this thread's.
        run_body(task, || unsafe { running.body.run(task) })
    };
    // The replayed task is not used from here on: it is freed with the last task of its run.
    match outcome {
        Ok(Poll::Ready(())) => end(task),
        Ok(Poll::Pending) => suspend(task),
        Err(payload) => {
            failure::panicked(task, payload);
            clear(task);
            end(task);
        }
    }
}

#[inline]
fn run_body(task: RecordId, body: impl FnOnce() -> Poll<()>) -> thread::Result<Poll<()>> {
    assert_nothing_held("a body");
    record(task).state.begin_poll();
    let interrupted = scheduler::trace_begin(task);
    let outcome = catch_unwind(AssertUnwindSafe(body));
    scheduler::trace_end(task, interrupted);
    outcome
}

/// Completes a task that must not run: it has no guards, so its accesses are released here.
#[cold]
fn skip(task: RecordId) {
    clear(task);
    // SAFETY: the accesses of a task that does not run are open, and nobody has guards of them.
    let open = |access| unsafe { OpenAccess::new(access) };
    let accesses = Accesses::of(record(task)).map(open);
    // SAFETY: as above; each is released once.
    accesses.for_each(|access| unsafe { release_unheld(access) });
    let closed = take_closed();
    // SAFETY: the units of the body, which does not run, and of the accesses closed here.
    unsafe { resolve(task, 1 + closed) };
}

/// Completes a task whose group is cancelled.
#[cold]
fn cancel(task: RecordId) {
    let cancelled = record(task);
    cancelled.cancel();
    match cancelled.state.phase().1 {
        Phase::Created => skip(task),
        // The task was suspended: its body has the guards.
        _ => {
            clear(task);
            end(task);
        }
    }
}

/// Drops a body that has not ended.
#[cold]
fn clear(task: RecordId) {
    // SAFETY: the task was taken from its queue, so it is this thread's.
    let cleared = catch_unwind(AssertUnwindSafe(|| unsafe { record(task).body.clear() }));
    if let Err(payload) = cleared {
        failure::panicked(task, payload);
    }
}

/// Ends a task whose body has ended and is dropped.
#[inline]
fn end(task: RecordId) {
    let ended = record(task);
    ended.state.set(Phase::Ended);
    let closed = take_closed() + pause(ended);
    // SAFETY: the units of the body, which has ended, and of the accesses closed here.
    unsafe { resolve(task, 1 + closed) };
}

/// Takes the number of accesses that the running task has closed and that are not counted yet.
#[inline]
fn take_closed() -> u32 {
    if RUNNING.with(|running| running.has_deferred.get()) {
        release_deferred_cold();
    }
    RUNNING.with(|running| running.closed.replace(0))
}

/// Performs the deferred releases once no panic unwinds: the body has caught its own panic, or its
/// failure is described.
#[cold]
fn release_deferred_cold() {
    if !std::thread::panicking() {
        RUNNING.with(|running| running.has_deferred.set(false));
        failure::release_deferred();
    }
}

/// Resolves the unit of a closed access of a task. While the task runs on this thread that is only
/// counted, so that guards dropped at the end of a body cost its counter one update together.
///
/// # Safety
/// As for [`resolve`], of the unit of the access.
#[inline]
pub(crate) unsafe fn resolve_access(task: RecordId) {
    let counted = RUNNING.with(|running| {
        let runs = running.task.get() == Some(task);
        if runs {
            running.closed.set(running.closed.get() + 1);
            if running.has_deferred.get() {
                release_deferred_cold();
            }
        }
        runs
    });
    if !counted {
        // SAFETY: by the contract of this function.
        unsafe { resolve(task, 1) };
    }
}

/// Returns the number of accesses that the body of a replayed task, which has ended or awaits, has
/// closed without counting them here.
#[inline]
fn pause(task: &Record) -> u32 {
    if task.role() == Role::Replayed { replay::pause(task) } else { 0 }
}

fn suspend(task: RecordId) {
    let suspended = record(task);
    suspended.set_waits_for(waker::take_note());
    let closed = take_closed() + pause(suspended);
    if closed > 0 {
        // The body's own unit is left, so this does not complete the task.
        suspended.open.take(closed);
    }
    // SAFETY: a task whose body has not ended has a unit for it.
    let group = unsafe { GroupInner::of_live_task(suspended) };
    if group.cancels_at_suspension(suspended) {
        suspended.state.set(Phase::Scheduled);
        scheduler::schedule(group, task, Reason::Yielded);
    } else if !suspended.state.suspend() {
        scheduler::schedule(group, task, Reason::Yielded);
    }
}

/// Queues `task`, which a waker has moved from suspended to scheduled.
pub(super) fn schedule_woken(task: RecordId) {
    // SAFETY: as for any body that has not ended; the caller alone schedules the task.
    let group = unsafe { GroupInner::of_live_task(record(task)) };
    scheduler::schedule(group, task, Reason::Woken);
}

/// Follows one edge to a pending task.
///
/// # Safety
/// The edge is counted in what the task waits for, and is followed once.
#[inline]
pub(crate) unsafe fn satisfy(task: RecordId) {
    let pending = record(task);
    // SAFETY: a task that has not run has a unit for its body.
    let group = || unsafe { GroupInner::of_live_task(pending) };
    if pending.pending.take(1) && (!pending.has_steps() || take_steps(group(), task)) {
        release_ready(task);
    }
}

/// Queues a ready task that has waited for others.
#[inline]
pub(crate) fn release_ready(task: RecordId) {
    let ready = record(task);
    // For the hang report, which may be taken between a queue and the body.
    ready.pending.set(SPAWNING);
    // SAFETY: a task that has not run has a unit for its body.
    let group = unsafe { GroupInner::of_live_task(ready) };
    scheduler::schedule_released(group, task);
}

/// Runs or queues a task that was spawned with nothing to wait for, or whose edges were all
/// followed during the spawn.
#[inline(never)]
pub(super) fn ready_at_spawn(group: &Arc<GroupInner>, task: RecordId) {
    if record(task).has_steps() {
        if !take_steps(group, task) {
            return;
        }
        // As in `release_ready`.
        record(task).pending.set(SPAWNING);
    }
    let inline = record(task).marks().is_inline();
    if inline && scheduler::on_worker_of(&group.shared) {
        run(task);
    } else {
        scheduler::schedule(group, task, Reason::Spawned);
    }
}

/// Takes the actions of a task that is ready and not queued yet.
pub(super) fn take_actions(task: RecordId) -> Option<Actions> {
    // SAFETY: the task has actions, and the caller has followed its last edge, so it is the
    // caller's.
    unsafe { record(task).body.take_actions() }
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

/// Takes `units` from the counter of a task's completion.
///
/// # Safety
/// The units are the caller's, which gives them up: objects that they kept alive may be gone.
#[inline]
pub(crate) unsafe fn resolve(task: RecordId, units: u32) {
    if record(task).open.take(units) {
        complete(task);
    }
}

#[inline]
fn complete(task: RecordId) {
    let completed = record(task);
    if completed.is_nested() {
        return complete_nested(task);
    }
    let role = completed.role();
    if role == Role::Replayed {
        return replay::complete(completed);
    }
    // SAFETY: the caller has taken the last unit, and the task is counted below.
    let group = unsafe { GroupInner::of_live_task(completed) };
    if let Some(failure) = completed.take_failure() {
        group.note_failure(completed, failure);
    }
    crate::record::free_all(task);
    scheduler::count_completion(group, role);
}

/// Completes a child, or a task that has passed on accesses, and its ancestors that waited only for
/// it.
#[cold]
fn complete_nested(task: RecordId) {
    let mut completed = Some(task);
    // A loop instead of recursion: tasks may be nested deeply.
    while let Some(task) = completed {
        // SAFETY: the last unit was taken here, or by the last child below, and `complete` takes
        // the failure out.
        let failure = unsafe { record(task).failure() };
        // SAFETY: until `complete` as there, and after that a nest has a unit of the parent, which
        // is of the same group.
        let group = unsafe { GroupInner::of_live_task(record(task)) };
        let nest = record(task).leave();
        complete(task);
        completed = nest.and_then(|nest| Nest::child_completed(nest, group, failure));
    }
}
