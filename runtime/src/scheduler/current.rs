//! What code on any thread asks of the worker it runs on: queue a task, record an event.
#![allow(unsafe_code, reason = "finds the worker of the running thread")]

use std::cell::Cell;
use std::sync::Arc;

use talpf_primitives::{Ordering, thread_local};
use talpf_traces::Event;

use super::Shared;
use super::help::{HELP_ROUNDS, SAMPLE_ROUNDS};
use super::worker::Worker;
use crate::group::GroupInner;
use crate::task::{self, Phase, RecordId, Role, Urgency, record};

/// Why a task is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It was spawned with nothing to wait for.
    Spawned,
    /// The last access it waited for has closed.
    Released,
    /// As `Released`, but what is ready already comes first.
    ReleasedLater,
    /// A waker fired.
    Woken,
    /// It was woken while it ran.
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

/// Has this thread be `worker` during `work`.
pub(super) fn enter<R>(worker: &Worker, work: impl FnOnce() -> R) -> R {
    /// Also when `work` panics: what the program keeps for this thread is dropped after that, and
    /// may spawn.
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
fn with_worker<R>(visit: impl FnOnce(&Worker) -> R) -> Option<R> {
    let worker = WORKER.get();
    // SAFETY: `enter` sets the pointer and clears it, and borrows the worker in between.
    unsafe { worker.as_ref() }.map(visit)
}

/// Returns whether this thread is a worker of any runtime.
pub(crate) fn on_worker() -> bool {
    !WORKER.get().is_null()
}

/// The number of this worker, if this thread is one of the runtime's.
#[inline]
pub(crate) fn worker_index(shared: &Arc<Shared>) -> Option<usize> {
    with_worker(|worker| Arc::ptr_eq(&worker.shared, shared).then_some(worker.index)).flatten()
}

/// The number of this worker among those of its runtime, whichever that is.
pub(crate) fn own_index() -> Option<usize> {
    with_worker(|worker| worker.index)
}

/// Whether this thread is a worker of the runtime.
#[inline]
pub(crate) fn on_worker_of(shared: &Arc<Shared>) -> bool {
    worker_index(shared).is_some()
}

/// Returns whether this thread does something for a task of the runtime that is not complete: it is
/// in its body, in its actions, or looks in its place.
///
/// **Ordering**: as that of [`Watch::is_for_task`](super::idleness::Watch::is_for_task).
pub(crate) fn is_for_task_of(shared: &Arc<Shared>) -> bool {
    let looks = |worker: &Worker| {
        let watch = worker.looking.borrow();
        Arc::ptr_eq(&worker.shared, shared)
            && watch.as_ref().is_some_and(|watch| watch.is_for_task())
    };
    task::is_for_task_of(shared) || with_worker(looks) == Some(true)
}

/// Whether a task that waits may look again instead of suspending: another worker is at work on
/// what it may wait for, and its own would have nothing else to do.
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
            // SAFETY: the worker is one of the group's runtime, and keeps the group no longer than it
            // works.
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

/// Whether the worker of this thread has no other task to run, and would look about for one rather
/// than sleep: it costs nobody anything if a task that waits looks a few times more.
#[inline]
pub fn worker_has_nothing_else() -> bool {
    with_worker(Worker::has_nothing_else).unwrap_or(false)
}

/// Queues a task of `group` that is ready because an access has closed: as the next one of this
/// worker if that has none, nothing else comes first and its delay is not measured.
#[inline]
pub(crate) fn schedule_released(group: &GroupInner, task: RecordId) {
    let is_next = with_worker(|worker| {
        Arc::ptr_eq(&worker.shared, &group.shared)
            && record(task).urgency() == Urgency::default()
            && !worker.sampler.is_armed()
            && group.affinity().is_none_or(|there| there == worker.index)
            && worker.seat().pulse.next.offer(task).is_none()
    });
    if is_next != Some(true) {
        schedule(group, task, Reason::Released);
    }
}

/// Queues a ready task of `group`.
pub(crate) fn schedule(group: &GroupInner, task: RecordId, reason: Reason) {
    let shared = &group.shared;
    let urgency = record(task).urgency();
    let goes_to = group.affinity().filter(|_| reason != Reason::Yielded && has_affinity(task));
    let queued = with_worker(|worker| {
        if urgency != Urgency::default() || !Arc::ptr_eq(&worker.shared, shared) {
            return false;
        }
        if let Some(there) = goes_to.filter(|there| *there != worker.index) {
            worker.shared.send_home(there, task);
            return true;
        }
        let next = &worker.seat().pulse.next;
        let behind = match reason {
            Reason::Spawned | Reason::ReleasedLater => Some(task),
            Reason::Released if record(task).marks().is_inline() => next.replace(task),
            Reason::Released => next.offer(task),
            Reason::Woken => next.replace(task),
            Reason::Yielded => {
                worker.deques.push_last(task);
                None
            }
        };
        match behind {
            // Where a worker that rests from stealing finds it.
            Some(behind)
                if !(reason.is_release() && behind == task) && goes_on_anywhere(behind) =>
            {
                shared.inject(behind);
            }
            Some(behind) => {
                match reason {
                    Reason::Spawned | Reason::ReleasedLater => worker.deques.push_last(behind),
                    _ => worker.deques.push_first(behind),
                }
                shared.wake_another(worker.index);
            }
            None => {}
        }
        if worker.sampler.is_armed() {
            worker.begin_sample(task);
        }
        true
    });
    if queued != Some(true) {
        schedule_shared(shared, task, urgency, goes_to);
    }
}

/// Returns whether a task goes to the worker of its group: all but inline ones, which are short, and
/// services.
fn has_affinity(task: RecordId) -> bool {
    let task = record(task);
    task.role() != Role::Service && !task.marks().is_inline()
}

/// Queues a task of `group` that is ready where worker `home`, if it has one, looks for it; behind
/// what is ready there already if it comes `later`.
#[inline(always)]
pub(crate) fn schedule_at(home: Option<usize>, group: &GroupInner, task: RecordId, later: bool) {
    let sent = with_worker(|worker| {
        let Some(home) = home else {
            return false;
        };
        let is_away = worker.index != home
            && Arc::ptr_eq(&worker.shared, &group.shared)
            && record(task).urgency() == Urgency::default();
        if is_away {
            worker.shared.send_home(home, task);
        }
        is_away
    });
    match (sent, later) {
        (Some(true), _) => {}
        (_, true) => schedule(group, task, Reason::ReleasedLater),
        (_, false) => schedule_released(group, task),
    }
}

/// Whether a task is a program or has been woken: it may keep a worker busy for long.
#[inline]
pub(super) fn goes_on_anywhere(task: RecordId) -> bool {
    let task = record(task);
    task.role() == Role::Main || task.state.phase().1 == Phase::Scheduled
}

#[cold]
fn schedule_shared(shared: &Arc<Shared>, task: RecordId, urgency: Urgency, goes_to: Option<usize>) {
    // Once queued, the task may run and the runtime end before the wake-up.
    let shared = Arc::clone(shared);
    match goes_to {
        _ if urgency != Urgency::default() => {
            shared.priorities.push(urgency, task);
            shared.wake_one();
        }
        Some(there) => shared.send_home(there, task),
        None => shared.inject(task),
    }
}

/// A task of `group` was spawned: now and then, if there are plenty, this worker runs some before
/// the spawner goes on.
///
/// A spawner that runs far ahead would fill memory with tasks that have left every cache before
/// they run.
#[inline]
pub(crate) fn help(group: &GroupInner) {
    with_worker(|worker| {
        let counter = &worker.seat().pulse.spawns;
        let spawns = counter.load(Ordering::Relaxed).wrapping_add(1);
        counter.store(spawns, Ordering::Relaxed);
        if spawns.is_multiple_of(HELP_ROUNDS) && Arc::ptr_eq(&worker.shared, &group.shared) {
            if spawns.is_multiple_of(SAMPLE_ROUNDS) {
                worker.sampler.arm();
            }
            worker.help(group);
        }
    });
}

/// Records an event in this worker's stream.
#[inline]
pub(crate) fn trace(event: impl FnOnce(u64) -> Event) {
    with_worker(|worker| worker.trace(event));
}

/// Notes that this thread enters the body of `task`. Returns the one whose slice that interrupts, in
/// a trace.
#[inline]
pub(crate) fn trace_begin(task: RecordId) -> Option<RecordId> {
    with_worker(|worker| {
        if worker.sampler.has(task) {
            worker.end_sample(task);
        }
        if worker.times_bodies() {
            worker.begin_body();
        }
        if worker.is_traced { worker.begin_slice(task) } else { None }
    })
    .flatten()
}

/// Notes that this thread leaves the body of `task`, and goes on with the slice of `outer`.
#[inline]
pub(crate) fn trace_end(task: RecordId, outer: Option<RecordId>) {
    with_worker(|worker| {
        if worker.times_bodies() {
            worker.end_body();
        }
        if worker.is_traced {
            worker.end_slice(task, outer);
        }
    });
}
