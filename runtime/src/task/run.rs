//! Running of tasks, and the steps from one state to the next.
#![allow(unsafe_code, reason = "runs the body of the task it has taken")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::thread;

use talpf_primitives::assert_nothing_held;

use super::failure;
use super::ready::{Actions, take_steps};
use super::release::release_unheld;
use crate::dependency::{OpenAccess, ReadySink};
use crate::error::Failure;
use crate::group::GroupInner;
use crate::record::{
    Accesses, Nest, Phase, Record, RecordId, Role, SPAWNING, free_all, record, running, take_note,
};
use crate::replay;
use crate::scheduler::{self, Reason, Runner};

/// Returns the group of the task that this thread runs.
pub(crate) fn current_group() -> Option<&'static GroupInner> {
    // SAFETY: the task that runs has a unit for its body.
    running::current().map(|task| unsafe { GroupInner::of_live_task(record(task)) })
}

/// Runs a ready or woken task until its body ends or awaits.
#[inline]
fn run(task: RecordId) {
    let _outer = running::enter(task);
    let running = record(task);
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
    let begin = scheduler::trace_begin(task);
    record(task).state.begin_poll();
    let outcome = catch_unwind(AssertUnwindSafe(body));
    scheduler::trace_end(task, begin);
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
    // SAFETY: the caller runs the task.
    cancelled.cancel(unsafe { GroupInner::of_live_task(cancelled) }.cancel_reason());
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
    if running::has_deferred() {
        release_deferred_cold();
    }
    running::take_closed()
}

/// Performs the deferred releases once no panic unwinds: the body has caught its own panic, or its
/// failure is described.
#[cold]
fn release_deferred_cold() {
    if !std::thread::panicking() {
        running::set_deferred(false);
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
    if !running::count_closed(task) {
        // SAFETY: by the contract of this function.
        unsafe { resolve(task, 1) };
    } else if running::has_deferred() {
        release_deferred_cold();
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
    suspended.set_waits_for(take_note());
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

/// The way of tasks from one state to the next, as dependencies and workers go it.
pub(crate) struct Steps;

impl Runner for Steps {
    #[inline]
    fn run(task: RecordId) {
        run(task);
    }
}

impl ReadySink for Steps {
    #[inline]
    fn ready(task: RecordId, by: RecordId) {
        let ready = record(task);
        // SAFETY: a task that has not run has a unit for its body.
        let group = || unsafe { GroupInner::of_live_task(ready) };
        scheduler::trace_edge(group, task, || Some(by));
        if !ready.has_steps() || take_steps(group(), task) {
            release_ready(task);
        }
    }

    #[inline]
    fn queue(task: RecordId, by: RecordId) {
        // SAFETY: as in `ready`.
        let group = || unsafe { GroupInner::of_live_task(record(task)) };
        scheduler::trace_edge(group, task, || Some(by));
        release_ready(task);
    }

    #[inline]
    unsafe fn resolve(task: RecordId, units: u32) {
        // SAFETY: by the contract of this function.
        unsafe { resolve(task, units) };
    }

    #[inline]
    unsafe fn resolve_access(task: RecordId) {
        // SAFETY: by the contract of this function.
        unsafe { resolve_access(task) };
    }
}

/// Queues a ready task that has waited for others.
#[inline]
pub(super) fn release_ready(task: RecordId) {
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
    scheduler::trace_edge(|| group, task, running::current);
    if record(task).has_steps() {
        if !take_steps(group, task) {
            return;
        }
        // As in `release_ready`.
        record(task).pending.set(SPAWNING);
    }
    let inline = record(task).marks().is_inline();
    if inline && scheduler::on_worker_for(group) {
        run(task);
    } else {
        scheduler::schedule(group, task, Reason::Spawned);
    }
}

/// Takes the actions of a task that is ready and not queued yet.
pub(super) fn take_actions(task: RecordId) -> Option<Actions> {
    // SAFETY: the caller has followed the last edge of the task, so it is the caller's.
    let actions = unsafe { record(task).body.place::<Option<Actions>>() }?;
    // SAFETY: the task has actions, so its body is a `Prepared` with `Actions`, which it
    // begins with.
    unsafe { &mut *actions }.take()
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
pub(super) fn complete(task: RecordId) {
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
    free_all(task);
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
        let (nest, at_completion) = record(task).take_nesting();
        at_completion.for_each(|action| action());
        complete(task);
        completed = nest.and_then(|nest| child_completed(nest, group, failure));
    }
}

/// Counts a complete child of `group`, with its failure. Returns the parent if that is complete,
/// too.
fn child_completed(
    nest: Arc<Nest>,
    group: &GroupInner,
    failure: Option<Arc<Failure>>,
) -> Option<RecordId> {
    failure.into_iter().for_each(|failure| nest.note_failure(failure));
    nest.count_completion().into_iter().for_each(|waiter| group.wake(waiter));
    nest.leave()
}
