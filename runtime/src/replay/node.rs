//! A task of a recorded graph, which runs once in every iteration.
//!
//! It has a task record of its own for the whole run, so guards, events, wakers and reports are
//! those of any task. What differs is what it waits for. Its count of edges is set anew, by a plain
//! store, whenever the task becomes ready: to the edges from its own iteration and from the one
//! before, as the next run of the task has them, and a bias for the task itself, which is taken
//! when it completes. So a task waits for itself in the iteration before.
//!
//! Nobody takes an edge of the next run before that store: whoever has such an edge conflicts with
//! the task, and waits itself until an access of the present run has closed.
//!
//! | field | written by |
//! |---|---|
//! | `closed`, `rest` | the runner at the start, then whoever drops guards |
//! | `step` | whoever completes the task, before anybody can make it ready again |
//! | `last_step` | the runner at the start, if the run has failed |
//! | all others | the recorder |
#![allow(unsafe_code, reason = "follows the pointers between records, nodes and their run")]

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::task::Poll;

use super::closed::{Change, Closed};
use super::plan::{BITS, Edge, Plan};
use super::run::Run;
use crate::group::GroupInner;
use crate::scheduler;
use crate::task::{EventCounter, Phase, Record, RecordId, Repeated, Role, record, resolve_access};

/// A task of a run. It lives as long as the run, which ends after all its tasks.
#[repr(align(64))]
pub(crate) struct Node {
    closed: Closed,
    /// Open accesses that share the last bit.
    rest: EventCounter,
    record: &'static Record,
    /// The step that runs, or runs next.
    step: AtomicUsize,
    last_step: AtomicUsize,
    run: AtomicPtr<Run>,
    body: Box<dyn Repeated>,
    pub(super) task: RecordId,
    /// The place among the tasks of the iteration.
    index: u32,
    /// The number of the first access among those of the iteration.
    first_access: u32,
    /// Edges to wait for from the second iteration on.
    waits_for: u32,
    /// The worker that runs it unless another has nothing else to do.
    home: Option<u32>,
    /// Whom its edges lead to.
    successors: Box<[u32]>,
}

/// Steps of a block. A task that begins one is queued behind what is ready, any other runs as soon as
/// it is: so data passes the steps of a block while it is in a cache, and a worker does not lose
/// itself in later steps with an ever longer front of tasks.
const BLOCK_STEPS: usize = 8;

thread_local! {
    /// The node whose body this thread runs, or one further out.
    static HERE: Cell<*const Node> = const { Cell::new(ptr::null()) };
}

impl Node {
    /// A node that runs in steps `step` to `last_step`.
    pub(super) fn new(
        task: RecordId,
        body: Box<dyn Repeated>,
        plan: &Plan,
        (index, first_access): (usize, usize),
        (step, last_step): (usize, usize),
        home: Option<u32>,
    ) -> Self {
        Node {
            closed: Closed::new(),
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
            home,
            successors: plan.successors_of(index).into(),
        }
    }

    /// Lets the record find the node and the node its run, which does not move any more.
    pub(super) fn link(&self, run: *mut Run) {
        self.run.store(run, Ordering::Relaxed);
        self.record.set_node(self);
    }

    /// The node of a record with the role `Replayed`. It is linked before the first task of its run is
    /// ready, and lives until the last is complete.
    ///
    /// # Safety
    /// The task has become ready in its run, and is not complete for the last time as long as the
    /// result is used: the caller has a unit of it.
    #[inline]
    unsafe fn of(record: &Record) -> &'static Node {
        // SAFETY: see above.
        unsafe { &*record.node() }
    }

    #[inline]
    fn run(&self) -> &'static Run {
        // SAFETY: linked as above, and the run owns this node.
        unsafe { &*self.run.load(Ordering::Relaxed) }
    }

    #[inline]
    fn is_last(&self) -> bool {
        self.step.load(Ordering::Relaxed) == self.last_step.load(Ordering::Relaxed)
    }

    /// Makes the step that begins the last one, of a run that has failed.
    ///
    /// Who waits for this step sees the failure, too, and stops at it or, over an edge from one
    /// iteration to the next, right after it: so nobody waits for another one.
    #[cold]
    fn stop(&self) {
        self.last_step.store(self.step.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    #[inline]
    fn home(&self) -> Option<usize> {
        self.home.map(|home| home as usize)
    }

    /// Queues the task: nothing holds it back any more.
    #[inline(always)]
    pub(super) fn release(&self, run: &Run) {
        run.waits[self.index as usize].begin(self.waits_for);
        // SAFETY: the holder of the tiles, a task of this group, is complete after this task.
        let group = unsafe { GroupInner::of_live_task(self.record) };
        let later = self.step.load(Ordering::Relaxed).is_multiple_of(BLOCK_STEPS);
        scheduler::schedule_at(self.home(), group, self.task, later);
    }

    /// Follows the edges of a bit whose accesses have all closed.
    #[inline(always)]
    fn follow(&self, run: &Run, bit: usize, change: Change) {
        let edges = run.plan.edges_of(self.first_access as usize + bit);
        if self.record.has_failed() {
            self.fail(run, edges, change);
        }
        for edge in edges {
            if change.completes(edge.accesses) && run.waits[edge.to as usize].follow_edge() {
                run.nodes[edge.to as usize].release(run);
            }
        }
    }

    /// The task has failed: stops the run, and poisons whoever waits for it in its iteration.
    #[cold]
    fn fail(&self, run: &Run, edges: &[Edge], change: Change) {
        // SAFETY: the access that closes, or the task that follows all its edges, has a unit.
        let Some(failure) = (unsafe { self.record.failure() }) else {
            return;
        };
        run.fail(&failure);
        let followed = edges.iter().filter(|edge| change.completes(edge.accesses));
        for edge in followed.filter(|edge| edge.to > self.index) {
            run.nodes[edge.to as usize].record.poison(&failure);
        }
    }

    /// Closes an access that a body drops on the thread that runs this one's. `false`: that goes as
    /// on any other thread. Apart, to keep the way of all other guards short.
    #[inline(never)]
    fn close_own(&self, record: &Record, access: usize) -> bool {
        let own = ptr::eq(self.record, record) && access < BITS - 1;
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

    /// An access has closed, which has changed its bit or not.
    #[inline(always)]
    fn closed(&self, access: usize, change: Option<Change>) {
        let run = self.run();
        if let Some(change) = change {
            self.follow(run, access.min(BITS - 1), change);
        }
        if self.is_last() {
            run.leave_tiles(self.first_access as usize + access);
        }
    }
}

/// The worker where a task that is in a queue is at home, if it is replayed.
pub(crate) fn home(record: &Record) -> Option<usize> {
    if record.role() != Role::Replayed {
        return None;
    }
    // SAFETY: a task that is in a queue has a unit for its body.
    unsafe { Node::of(record) }.home()
}

/// Begins the next run of a ready task. Says with what, unless it must not run.
#[inline]
pub(crate) fn begin(record: &Record) -> Option<&'static Node> {
    // SAFETY: the caller has taken the task from a queue: it has a unit for its body.
    let node = unsafe { Node::of(record) };
    let accesses = record.access_count();
    node.closed.reset();
    if accesses >= BITS {
        node.rest.set((accesses - BITS + 1) as u32);
    }
    record.open.set(1 + accesses as u32);
    if node.run().has_failed() {
        node.stop();
        return None;
    }
    Some(node)
}

impl Node {
    /// Runs the body, to its end or to its first await.
    #[inline]
    pub(crate) fn call(&self) -> Poll<()> {
        let _outer = Outer(HERE.replace(self));
        self.body.run(self.task, self.step.load(Ordering::Relaxed))
    }
}

/// Puts back the node of the body around the one that ends.
struct Outer(*const Node);

impl Drop for Outer {
    #[inline]
    fn drop(&mut self) {
        HERE.set(self.0);
    }
}

/// Closes access number `access` of a record if this thread runs the body of its task. The short
/// way, which most guards go.
///
/// # Safety
/// The access is open and the caller's to close.
#[inline]
pub(crate) unsafe fn close_here(record: &Record, access: usize) -> bool {
    // SAFETY: `call` has put it there and is still on the stack, and a body runs inside its node.
    let node = unsafe { HERE.get().as_ref() };
    node.is_some_and(|node| node.close_own(record, access))
}

/// Closes all accesses of the task whose body this thread runs. `false`: that is for their guards to
/// do.
///
/// # Safety
/// All accesses are open and the caller's to close: if this returns `true` it forgets their guards.
#[inline(always)]
pub(crate) unsafe fn close_all(record: &Record) -> bool {
    let accesses = record.access_count();
    if accesses >= BITS || record.has_failed() {
        return false;
    }
    // SAFETY: the body that runs has a unit.
    let node = unsafe { Node::of(record) };
    node.closed.close_here((1 << accesses) - 1);
    node.follow_all(accesses);
    true
}

impl Node {
    /// Follows all edges.
    #[inline(always)]
    fn follow_all(&self, accesses: usize) {
        let run = self.run();
        for to in &self.successors {
            if run.waits[*to as usize].follow_edge() {
                run.nodes[*to as usize].release(run);
            }
        }
        if self.is_last() {
            (0..accesses).for_each(|access| run.leave_tiles(self.first_access as usize + access));
        }
    }
}

/// The body of a task has ended or awaits: how many accesses it has closed that nobody has counted.
/// If others are open, what it has closed counts together with what others do from here on.
#[inline]
pub(crate) fn pause(record: &Record) -> u32 {
    // SAFETY: the caller gives up the unit of the body after this.
    let node = unsafe { Node::of(record) };
    let accesses = record.access_count();
    match node.closed.pause() {
        closed if accesses < BITS && closed == (1 << accesses) - 1 => accesses as u32,
        0 => 0,
        closed => node.share(closed),
    }
}

impl Node {
    /// Shares what the body has closed. Follows the edges whose accesses have all closed, with those
    /// that wait for any of `closed`.
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
    let node = unsafe { Node::of(record) };
    node.close(access);
    // SAFETY: by the contract of this function.
    unsafe { resolve_access(node.task) };
}

/// As `close`, for one that was passed on to children: nothing of the task is open, and the caller
/// completes it.
///
/// # Safety
/// The task is not complete before the caller has it so, and the access is closed once.
pub(crate) unsafe fn close_late(record: &Record, access: usize) {
    // SAFETY: the caller completes the task after this.
    unsafe { Node::of(record) }.close(access);
}

/// A run of the task is complete: makes it wait for the next, or ends it.
#[inline]
pub(crate) fn complete(record: &Record) {
    // SAFETY: the caller has taken the last unit of this step.
    let node = unsafe { Node::of(record) };
    let run = node.run();
    if let Some(failure) = record.take_failure() {
        run.fail(&failure);
        // SAFETY: as in `release`.
        unsafe { GroupInner::of_live_task(record) }.note_failure(record, failure);
    }
    if node.is_last() {
        // Nothing for a report: what the others wait for is elsewhere.
        record.state.set(Phase::Free);
        // SAFETY: nodes are linked by `start`, and this was the last step of the task.
        return unsafe { Run::leave(node.run.load(Ordering::Relaxed)) };
    }
    node.step.store(node.step.load(Ordering::Relaxed) + run.turns, Ordering::Relaxed);
    record.state.set(Phase::Created);
    if run.waits[node.index as usize].end() {
        node.release(run);
    }
}
