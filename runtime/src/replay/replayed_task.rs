//! A task of a recorded graph, which runs once in every iteration.
//!
//! The task has a record of its own for the whole run, so its guards, events, wakers and reports
//! are those of any task. Only its waiting differs. Its count of edges is set again, by a plain
//! store, whenever the task becomes ready: to the edges from its own iteration and from the one
//! before, for the next run of the task, and a bias for the task itself, which is taken when it
//! completes. So a task waits for itself in the iteration before.
//!
//! Nobody follows an edge of the next run before that store: a task with such an edge conflicts
//! with this one, and waits itself until an access of the present run has closed.
//!
//! | field | written by |
//! |---|---|
//! | `closed`, `rest` | the runner at the start, then the threads that drop guards |
//! | `step` | the thread that completes the task, before any can make it ready again |
//! | `last_step` | the runner at the start, if the run has failed |
//! | all others | the recorder |
#![allow(unsafe_code, reason = "follows the pointers between records, tasks and their run")]

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::task::Poll;

use super::closed_accesses::{ClosedAccesses, ClosedChange};
use super::plan::{BITS, Edge, Plan};
use super::run::Run;
use crate::group::GroupInner;
use crate::record::{EventCounter, Phase, Record, RecordId, ReplayHead, Role, record, running};
use crate::scheduler::{self, begins_block};
use crate::task::{Repeated, resolve_access};

/// A task of a run, which lives as long as the run.
#[repr(C, align(64))]
pub(crate) struct ReplayedTask {
    /// The part that records know, first, so that their pointers lead to the whole.
    head: ReplayHead,
    closed: ClosedAccesses,
    /// Open accesses that share the last bit, unless all accesses of the task were closed together.
    rest: EventCounter,
    record: &'static Record,
    /// The present step, or the next one.
    step: AtomicUsize,
    last_step: AtomicUsize,
    run: AtomicPtr<Run>,
    pub(super) task: RecordId,
    /// Index of the task in the iteration.
    index: u32,
    body: Box<dyn Repeated>,
    /// Number of the first access among those of the iteration.
    first_access: u32,
    /// Number of edges to wait for from the second iteration on.
    waits_for: u32,
    /// Tasks that the edges lead to.
    successors: Box<[u32]>,
}

thread_local! {
    /// The replayed task whose body this thread runs, innermost or not.
    static CURRENT: Cell<*const ReplayedTask> = const { Cell::new(ptr::null()) };
}

impl ReplayedTask {
    /// Creates a task that runs in steps `step` to `last_step`.
    pub(super) fn new(
        task: RecordId,
        body: Box<dyn Repeated>,
        plan: &Plan,
        (index, first_access): (usize, usize),
        (step, last_step): (usize, usize),
        preferred_worker: Option<u32>,
    ) -> Self {
        ReplayedTask {
            head: ReplayHead::new(preferred_worker),
            closed: ClosedAccesses::new(),
            rest: EventCounter::new(),
            record: record(task),
            step: AtomicUsize::new(step),
            last_step: AtomicUsize::new(last_step),
            run: AtomicPtr::default(),
            body,
            task,
            index: index as u32,
            first_access: first_access as u32,
            waits_for: plan.within[index] + plan.across[index],
            successors: plan.successors_of(index).into(),
        }
    }

    /// Links the record to this task, and this task to its run, which does not move any more.
    pub(super) fn link(&self, run: *mut Run) {
        self.run.store(run, Ordering::Relaxed);
        self.record.set_replayed(ptr::from_ref(self).cast());
    }

    /// Returns the replayed task of a record with the role `Replayed`. It is linked before the
    /// first task of its run is ready, and lives until the last is complete.
    ///
    /// # Safety
    /// The task has become ready in its run, and is not complete for the last time as long as the
    /// result is used: the caller has a unit of it.
    #[inline]
    unsafe fn of(record: &Record) -> &'static ReplayedTask {
        // SAFETY: see above.
        unsafe { &*record.replayed().cast() }
    }

    #[inline]
    fn run(&self) -> &'static Run {
        // SAFETY: linked as above, and the run owns this task.
        unsafe { &*self.run.load(Ordering::Relaxed) }
    }

    #[inline]
    fn is_last(&self) -> bool {
        self.step.load(Ordering::Relaxed) == self.last_step.load(Ordering::Relaxed)
    }

    /// Makes the step that begins the last one, in a run that has failed.
    ///
    /// A task that waits for this step sees the failure, too, and stops at it or, over an edge from
    /// one iteration to the next, right after it: so no task waits for another step.
    #[cold]
    fn stop(&self) {
        self.last_step.store(self.step.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Queues the task, which nothing holds back any more: `by` was the last to do so.
    #[inline(always)]
    pub(super) fn release(&self, run: &Run, by: RecordId) {
        run.waits[self.index as usize].begin(self.waits_for);
        // SAFETY: the holder of the tiles, a task of this group, is complete after this task.
        let group = unsafe { GroupInner::of_live_task(self.record) };
        scheduler::trace_edge(|| group, self.task, || Some(by));
        let policies = group.shared.config.policies;
        let later = begins_block(policies, self.step.load(Ordering::Relaxed))
            && !self.record.marks().is_inline();
        scheduler::schedule_at(self.head.preferred_worker(), group, self.task, later);
    }

    /// Follows the edges of a bit whose accesses have all closed.
    #[inline(always)]
    fn follow(&self, run: &Run, bit: usize, change: ClosedChange) {
        let edges = run.plan.edges_of(self.first_access as usize + bit);
        if self.record.has_failed() {
            self.fail(run, edges, change);
        }
        for edge in edges {
            if change.completes(edge.accesses) && run.waits[edge.to as usize].follow_edge() {
                run.tasks[edge.to as usize].release(run, self.task);
            }
        }
    }

    /// Stops the run as the task has failed, and poisons the tasks that wait for it in its
    /// iteration.
    #[cold]
    fn fail(&self, run: &Run, edges: &[Edge], change: ClosedChange) {
        // SAFETY: the access that closes, or the task that follows all its edges, has a unit.
        let Some(failure) = (unsafe { self.record.failure() }) else {
            return;
        };
        run.fail(&failure);
        let followed = edges.iter().filter(|edge| change.completes(edge.accesses));
        for edge in followed.filter(|edge| edge.to > self.index) {
            run.tasks[edge.to as usize].record.poison(&failure);
        }
    }

    /// Closes the access with an index in one of the records of a task, if its guard drops on the thread that runs
    /// this task's body. Returns `false` for accesses to close as on any other thread. Not inlined, to keep the path of
    /// all other guards short.
    #[inline(never)]
    fn close_own(&self, record: &Record, index: usize) -> bool {
        let access = if ptr::eq(self.record, record) {
            index
        } else if record.owner() == self.task {
            record.accesses_before() + index
        } else {
            return false;
        };
        let own = access < BITS - 1;
        if own {
            self.closed(access, Some(self.closed.close_here(1 << access)));
        }
        own
    }

    /// Closes an access, on any thread.
    fn close(&self, access: usize) {
        let bit = access.min(BITS - 1);
        let own = access < BITS - 1;
        self.closed(access, (own || self.rest.take(1)).then(|| self.closed.close(1 << bit)));
    }

    /// Follows the edges of a closed access, if that has changed its bit.
    #[inline(always)]
    fn closed(&self, access: usize, change: Option<ClosedChange>) {
        let run = self.run();
        if let Some(change) = change {
            self.follow(run, access.min(BITS - 1), change);
        }
        if self.is_last() {
            run.leave_tiles(self.first_access as usize + access);
        }
    }
}

/// Begins the next run of a ready task. Returns `None` if it must not run.
#[inline]
pub(crate) fn begin(record: &Record) -> Option<&'static ReplayedTask> {
    // SAFETY: the caller has taken the task from a queue: it has a unit for its body.
    let replayed = unsafe { ReplayedTask::of(record) };
    let accesses = record.access_count();
    replayed.closed.reset();
    if accesses >= BITS {
        replayed.rest.set((accesses - BITS + 1) as u32);
    }
    record.open.set(1 + accesses as u32);
    if replayed.run().has_failed() {
        replayed.stop();
        return None;
    }
    Some(replayed)
}

impl ReplayedTask {
    /// Runs the body, to its end or to its first await.
    #[inline]
    pub(crate) fn call(&self) -> Poll<()> {
        let _outer = Outer(CURRENT.replace(self));
        self.body.run(self.task)
    }
}

/// Restores the replayed task of the outer body when the inner one ends.
struct Outer(*const ReplayedTask);

impl Drop for Outer {
    #[inline]
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// Returns the step of an iteration that the calling body runs in, counted from zero. `None` outside
/// of a task, and in one that is not of an [`Iteration`](crate::Iteration).
pub fn current_step() -> Option<usize> {
    let record = record(running::current()?);
    if record.role() != Role::Replayed {
        return None;
    }
    // SAFETY: the body that runs has a unit.
    Some(unsafe { ReplayedTask::of(record) }.step.load(Ordering::Relaxed))
}

/// Closes the access with an index in a record if this thread runs the body of its task: the short
/// path, which most guards take.
///
/// # Safety
/// The access is open and the caller's to close.
#[inline]
pub(crate) unsafe fn close_here(record: &Record, index: usize) -> bool {
    // SAFETY: `call` has put the pointer there and is still on the stack, and a body runs inside
    // `call` of its task.
    let replayed = unsafe { CURRENT.get().as_ref() };
    replayed.is_some_and(|replayed| replayed.close_own(record, index))
}

/// Closes all accesses of the task whose body this thread runs. Returns `false` if their guards
/// have to do that.
///
/// # Safety
/// All accesses are open and the caller's to close: if this returns `true` it forgets their guards.
#[inline(always)]
pub(crate) unsafe fn close_all(record: &Record) -> bool {
    if record.has_failed() {
        return false;
    }
    let accesses = record.access_count();
    // SAFETY: the body that runs has a unit.
    let replayed = unsafe { ReplayedTask::of(record) };
    replayed.closed.close_here(bits_of(accesses));
    replayed.follow_all(accesses);
    true
}

/// Returns the bits of so many accesses.
#[inline]
fn bits_of(accesses: usize) -> u32 {
    1u32.checked_shl(accesses as u32).map_or(u32::MAX, |above| above - 1)
}

impl ReplayedTask {
    /// Follows all edges.
    #[inline(always)]
    fn follow_all(&self, accesses: usize) {
        let run = self.run();
        for to in &self.successors {
            if run.waits[*to as usize].follow_edge() {
                run.tasks[*to as usize].release(run, self.task);
            }
        }
        if self.is_last() {
            (0..accesses).for_each(|access| run.leave_tiles(self.first_access as usize + access));
        }
    }
}

/// Notes that the body of a task has ended or awaits. Returns the number of accesses that it has
/// closed and nobody has counted. If others are open, the closed ones are shared, and count
/// together with those that close from then on.
#[inline]
pub(crate) fn pause(record: &Record) -> u32 {
    // SAFETY: the caller gives up the unit of the body after this.
    let replayed = unsafe { ReplayedTask::of(record) };
    let accesses = record.access_count();
    match replayed.closed.pause() {
        closed if closed == bits_of(accesses) => accesses as u32,
        0 => 0,
        closed => replayed.share(closed),
    }
}

impl ReplayedTask {
    /// Shares the accesses that the body has closed, and follows the edges that wait for any of
    /// them and whose accesses have all closed.
    #[cold]
    fn share(&self, closed: u32) -> u32 {
        let (run, change) = (self.run(), self.closed.share());
        let mut left = closed;
        while left != 0 {
            let bit = left.trailing_zeros() as usize;
            left &= left - 1;
            // An edge is followed with the last of its bits.
            self.follow(run, bit, change.without(left));
        }
        closed.count_ones()
    }
}

/// Closes access number `access` of a task.
///
/// # Safety
/// The access is open and the caller's to close, with its unit of the task's completion.
pub(crate) unsafe fn close(record: &Record, access: usize) {
    // SAFETY: the access is open, and has a unit that is given up below.
    let replayed = unsafe { ReplayedTask::of(record) };
    replayed.close(access);
    // SAFETY: by the contract of this function.
    unsafe { resolve_access(replayed.task) };
}

/// Closes an access as `close` does, if it was passed on to children: no access of the task is
/// open, and the caller completes the task.
///
/// # Safety
/// The caller completes the task, and the access is closed once.
pub(crate) unsafe fn close_late(record: &Record, access: usize) {
    // SAFETY: the caller completes the task after this.
    unsafe { ReplayedTask::of(record) }.close(access);
}

/// Completes a run of the task: makes it wait for the next, or ends it.
#[inline]
pub(crate) fn complete(record: &Record) {
    // SAFETY: the caller has taken the last unit of this step.
    let replayed = unsafe { ReplayedTask::of(record) };
    let run = replayed.run();
    if let Some(failure) = record.take_failure() {
        run.fail(&failure);
        // SAFETY: as in `release`.
        unsafe { GroupInner::of_live_task(record) }.note_failure(record, failure);
    }
    if replayed.is_last() {
        // Not shown in reports: other tasks do not wait for this one any more.
        record.state.set(Phase::Free);
        // SAFETY: tasks are linked by `start`, and this was the last step of the task.
        return unsafe { Run::leave(replayed.run.load(Ordering::Relaxed)) };
    }
    replayed.step.store(replayed.step.load(Ordering::Relaxed) + run.unroll, Ordering::Relaxed);
    record.state.set(Phase::Created);
    if run.waits[replayed.index as usize].end() {
        replayed.release(run, replayed.task);
    }
}
