//! Functions through which code on any thread uses the worker that it runs on: to queue a task, or
//! to record an event.
#![allow(unsafe_code, reason = "finds the worker of the running thread")]

use std::cell::Cell;
use std::sync::Arc;

use talpf_primitives::{Ordering, thread_local};
use talpf_traces::{Event, Recorder};

use super::policy::throttle::{HELP_ROUNDS, SAMPLE_ROUNDS};
use super::trace_state::SliceBegin;
use super::worker::Worker;
use super::worker_set::{WorkerSet, goes_on_anywhere};
use super::{Runner, Shared};
use crate::group::GroupInner;
use crate::record::{RecordId, Role, Urgency, record, running};

/// The reason why a task is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The task was spawned with nothing to wait for.
    Spawned,
    /// The last access that the task waited for has closed.
    Released,
    /// The last access has closed as for `Released`, but tasks that are ready already come first.
    ReleasedLater,
    /// A waker fired.
    Woken,
    /// The task was woken while it ran.
    Yielded,
}

impl Reason {
    fn is_release(self) -> bool {
        matches!(self, Self::Released | Self::ReleasedLater)
    }
}

thread_local! {
    static WORKER: Cell<*const Worker> = const { Cell::new(std::ptr::null()) };
}

/// Makes `worker` the worker of this thread during `work`.
pub(super) fn enter<R>(worker: &Worker, work: impl FnOnce() -> R) -> R {
    /// Clears the worker, also when `work` panics: thread-locals of the program are dropped after
    /// that, and may spawn.
    struct Leave;

    impl Drop for Leave {
        fn drop(&mut self) {
            WORKER.set(std::ptr::null());
        }
    }

    WORKER.set(worker);
    let _leave = Leave;
    work()
}

#[inline]
pub(super) fn with_worker<R>(visit: impl FnOnce(&Worker) -> R) -> Option<R> {
    let worker = WORKER.get();
    // SAFETY: `enter` sets the pointer and clears it, and borrows the worker in between.
    unsafe { worker.as_ref() }.map(visit)
}

/// Returns `true` if this thread is a worker of any runtime.
pub(crate) fn on_worker() -> bool {
    !WORKER.get().is_null()
}

/// Returns the number of this worker if this thread is a worker of the runtime.
#[inline]
pub(crate) fn worker_index(shared: &Arc<Shared>) -> Option<usize> {
    with_worker(|worker| Arc::ptr_eq(&worker.shared, shared).then_some(worker.index)).flatten()
}

/// Returns the number of this worker if this thread is a worker of the set.
#[inline]
pub(super) fn index_in(set: &Arc<WorkerSet>) -> Option<usize> {
    with_worker(|worker| Arc::ptr_eq(&worker.set, set).then_some(worker.index)).flatten()
}

/// Returns `true` if this thread is a worker that runs the tasks of `group`.
#[inline]
pub(crate) fn on_worker_for(group: &GroupInner) -> bool {
    index_in(&group.set).is_some()
}

/// Returns the number of this worker among those of its runtime, whichever that is.
pub(crate) fn own_index() -> Option<usize> {
    with_worker(|worker| worker.index)
}

/// Returns `true` if this thread is a worker of the runtime.
fn on_worker_of(shared: &Arc<Shared>) -> bool {
    worker_index(shared).is_some()
}

/// Returns `true` if this thread works for a task of the runtime that is not complete: it is in the
/// task's body or in its actions, or it polls a condition in its place.
///
/// **Ordering**: as that of [`Watch::is_for_task`](super::idleness::Watch::is_for_task).
pub(crate) fn is_for_task_of(shared: &Arc<Shared>) -> bool {
    let polls = |worker: &Worker| {
        let watch = worker.current_watch.borrow();
        Arc::ptr_eq(&worker.shared, shared)
            && watch.as_ref().is_some_and(|watch| watch.is_for_task())
    };
    runs_task_of(shared) || with_worker(polls) == Some(true)
}

/// Returns `true` if this thread is in the body or in the actions of a task of the runtime.
pub(super) fn runs_task_of(shared: &Arc<Shared>) -> bool {
    running::current().or_else(running::acts_for).is_some_and(|task| {
        // SAFETY: a task that runs has a unit for its body, and none is complete before its actions
        // have ended.
        let group = unsafe { GroupInner::of_live_task(record(task)) };
        Arc::ptr_eq(&group.shared, shared)
    })
}

/// Returns `true` if a task that waits may poll again instead of suspending: another worker runs
/// tasks that it may wait for, and its own worker would have nothing else to do.
///
/// For waits of a microsecond, which suspending would double.
#[inline]
pub fn worker_is_spare() -> bool {
    with_worker(Worker::is_spare).unwrap_or(false)
}

/// Counts a completed task of `group`.
#[inline]
pub(crate) fn count_completion(group: &GroupInner, role: Role) {
    let counted = with_worker(|worker| {
        let ours = Arc::ptr_eq(&worker.shared, &group.shared);
        if ours {
            // SAFETY: the worker is one of the group's runtime, and keeps the group no longer than
            // it works.
            worker.count_completion(unsafe { group.of_worker() }, role);
        }
        ours
    });
    if counted != Some(true) {
        count_completion_outside(group, role);
    }
}

#[cold]
fn count_completion_outside(group: &GroupInner, role: Role) {
    // Nothing else keeps the group once its last task is counted.
    group.keep().count_completion_outside(role);
}

/// Returns `true` if the worker of this thread has no other task to run, and would search for one
/// rather than park: further polls of a task that waits cost nobody anything.
#[inline]
pub fn worker_has_nothing_else() -> bool {
    with_worker(Worker::has_nothing_else).unwrap_or(false)
}

/// Queues a task of `group` that is ready because an access has closed: as the next one of this
/// worker if that has none, nothing else comes first and its delay is not measured.
#[inline]
pub(crate) fn schedule_released(group: &GroupInner, task: RecordId) {
    let is_next = with_worker(|worker| {
        Arc::ptr_eq(&worker.set, &group.set)
            && record(task).urgency() == Urgency::default()
            && !worker.sampler.is_armed()
            && worker.has_next_slot
            && group.affinity().is_none_or(|preferred| preferred == worker.index)
            && worker.slot().hot.next.put_if_empty(task).is_none()
    });
    if is_next != Some(true) {
        schedule(group, task, Reason::Released);
    }
}

/// Queues a ready task of `group`.
pub(crate) fn schedule(group: &GroupInner, task: RecordId, reason: Reason) {
    let set = &group.set;
    let urgency = record(task).urgency();
    let goes_to = group.affinity().filter(|_| reason != Reason::Yielded && has_affinity(task));
    let queued = with_worker(|worker| {
        if urgency != Urgency::default() || !Arc::ptr_eq(&worker.set, set) {
            return false;
        }
        if let Some(preferred) = goes_to.filter(|preferred| *preferred != worker.index) {
            worker.set.push_to_affinity_queue(preferred, task);
            return true;
        }
        let next = &worker.slot().hot.next;
        let displaced = match reason {
            Reason::Spawned | Reason::ReleasedLater => Some(task),
            Reason::Yielded => {
                worker.deques.push_last(task);
                None
            }
            _ if !worker.has_next_slot => Some(task),
            Reason::Released if record(task).marks().is_inline() => next.replace(task),
            Reason::Released => next.put_if_empty(task),
            Reason::Woken => next.replace(task),
        };
        match displaced {
            // Where a worker that rests from stealing finds it.
            Some(displaced)
                if !(reason.is_release() && displaced == task) && goes_on_anywhere(displaced) =>
            {
                set.inject(displaced);
            }
            Some(displaced) => {
                match reason {
                    Reason::Spawned | Reason::ReleasedLater => worker.deques.push_last(displaced),
                    _ if !worker.is_depth_first => worker.deques.push_last(displaced),
                    _ => worker.deques.push_first(displaced),
                }
                set.wake_another(&worker.slot().hot.pushes);
            }
            None => {}
        }
        if worker.sampler.is_armed() {
            worker.begin_sample(task);
        }
        true
    });
    if queued != Some(true) {
        schedule_shared(set, task, urgency, goes_to);
    }
}

/// Returns `true` if a task goes to the worker of its group: all but inline ones, which are short,
/// and services.
fn has_affinity(task: RecordId) -> bool {
    let task = record(task);
    task.role() != Role::Service && !task.marks().is_inline()
}

/// Queues a ready task of `group` for its preferred worker, if it has one, and behind the tasks
/// that are ready there already if it comes `later`.
#[inline(always)]
pub(crate) fn schedule_at(
    preferred: Option<usize>,
    group: &GroupInner,
    task: RecordId,
    later: bool,
) {
    let pushed = with_worker(|worker| {
        let Some(preferred) = preferred else {
            return false;
        };
        let is_other = worker.index != preferred
            && Arc::ptr_eq(&worker.set, &group.set)
            && record(task).urgency() == Urgency::default();
        if is_other {
            worker.set.push_to_affinity_queue(preferred, task);
        }
        is_other
    });
    match (pushed, later) {
        (Some(true), _) => {}
        (_, true) => schedule(group, task, Reason::ReleasedLater),
        (_, false) => schedule_released(group, task),
    }
}

#[cold]
fn schedule_shared(set: &Arc<WorkerSet>, task: RecordId, urgency: Urgency, goes_to: Option<usize>) {
    // Once queued, the task may run and the runtime end before the wake-up.
    let set = Arc::clone(set);
    match goes_to {
        _ if urgency != Urgency::default() => {
            set.priorities.push(urgency, task);
            set.wake_one();
        }
        Some(preferred) => set.push_to_affinity_queue(preferred, task),
        None => set.inject(task),
    }
}

/// Counts a spawn of a task of `group`. Now and then, if there are plenty of tasks, this worker
/// runs some of them before the spawner goes on.
///
/// A spawner that runs far ahead would fill memory with tasks that have left every cache before
/// they run.
#[inline]
pub(crate) fn throttle<R: Runner>(group: &GroupInner) {
    with_worker(|worker| {
        let counter = &worker.slot().hot.spawns;
        let spawns = counter.load(Ordering::Relaxed).wrapping_add(1);
        counter.store(spawns, Ordering::Relaxed);
        if spawns.is_multiple_of(HELP_ROUNDS) && Arc::ptr_eq(&worker.set, &group.set) {
            if spawns.is_multiple_of(SAMPLE_ROUNDS) {
                worker.sampler.arm();
            }
            worker.throttle::<R>(group);
        }
    });
}

/// Records an event of a runtime in this worker's stream, or in that of all threads that are none of
/// its workers.
#[inline]
pub(crate) fn trace(shared: &Arc<Shared>, event: impl FnOnce(u64) -> Event) {
    let worker = WORKER.get();
    // SAFETY: `enter` sets the pointer and clears it, and borrows the worker in between.
    match unsafe { worker.as_ref() } {
        Some(worker) if !worker.is_traced => {}
        Some(worker) if Arc::ptr_eq(&worker.shared, shared) => worker.trace(event),
        _ => shared.trace_outside(event),
    }
}

/// Records that `task`, of a group, becomes ready as `by` has released, spawned or woken it, if edges
/// are traced; `None`: something beside tasks has, which only counts on a worker.
#[inline(always)]
pub(crate) fn trace_edge<'g>(
    group: impl FnOnce() -> &'g GroupInner,
    task: RecordId,
    by: impl FnOnce() -> Option<RecordId>,
) {
    let worker = WORKER.get();
    // SAFETY: `enter` sets the pointer and clears it, and borrows the worker in between.
    match unsafe { worker.as_ref() } {
        Some(worker) if !worker.traces_edges => {}
        _ => trace_edge_slow(group(), task, by()),
    }
}

#[cold]
fn trace_edge_slow(group: &GroupInner, task: RecordId, by: Option<RecordId>) {
    let recorder = group.shared.config.recorder.as_ref();
    if !recorder.is_some_and(Recorder::keeps_edges) || record(task).role() == Role::Service {
        return;
    }
    if by.is_none() && !on_worker_of(&group.shared) {
        return;
    }
    // The trace has no services.
    let by = by.filter(|by| record(*by).role() != Role::Service);
    let by = by.map_or(0, |by| record(by).number(by));
    let number = record(task).number(task);
    trace(&group.shared, |_| Event::ready(group.number(), number, by));
}

/// Notes that this thread is about to enter the body of `task`. Returns the begin of its slice of
/// the trace.
#[inline]
pub(crate) fn trace_begin(task: RecordId) -> SliceBegin {
    with_worker(|worker| {
        if worker.sampler.has(task) {
            worker.end_sample(task);
        }
        if worker.times_bodies() {
            worker.begin_body();
        }
        if worker.is_traced { worker.begin_slice(task) } else { SliceBegin::default() }
    })
    .unwrap_or_default()
}

/// Notes that this thread leaves the body of `task`, whose slice began at `begin`.
#[inline]
pub(crate) fn trace_end(task: RecordId, begin: SliceBegin) {
    with_worker(|worker| {
        if worker.times_bodies() {
            worker.end_body();
        }
        if worker.is_traced {
            worker.end_slice(task, begin);
        }
    });
}
