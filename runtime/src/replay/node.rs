//! A task of a recorded graph, which runs once in every iteration.
//!
//! It has a task record of its own for the whole run, so guards, events, wakers and reports are
//! those of any task. What differs is what it waits for. The record's count of pending edges is set
//! anew, by a plain store, whenever the task becomes ready: to the edges from tasks of the next
//! iteration and of this one, and a bias for the task itself, which is taken when it completes. So
//! a task waits for itself in the iteration before; with that nobody can take an edge of the next
//! iteration before the store, because whoever conflicts with a task in the next iteration also
//! waits for an access of it in this one.
//!
//! | field | written by |
//! |---|---|
//! | `closed`, `rest` | the runner at the start, then whoever drops guards |
//! | `step` | whoever completes the task, before anybody can make it ready again |
//! | all others | the recorder |
#![allow(unsafe_code, reason = "follows the pointers between records, nodes and their run")]

use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::task::Poll;

use super::closed::{Change, Closed};
use super::plan::BITS;
use super::run::Run;
use crate::error::Failure;
use crate::group::GroupInner;
use crate::scheduler::{self, Reason};
use crate::task::{
    EventCounter, Phase, Record, RecordId, Repeated, SPAWNING, current, record, resolve_access,
};

/// A task of a run. It lives as long as the run, which ends after all its tasks.
#[repr(align(64))]
pub(crate) struct Node {
    closed: Closed,
    /// Open accesses that share the last bit.
    rest: EventCounter,
    /// The step that runs, or runs next.
    step: AtomicUsize,
    run: AtomicPtr<Run>,
    body: Box<dyn Repeated>,
    pub(super) task: RecordId,
    /// The place among the tasks of the iteration.
    index: u32,
    /// The number of the first access among those of the iteration.
    first_access: u32,
    /// Edges to wait for from the second iteration on.
    edges: u32,
}

impl Node {
    /// A node that runs first in step `step`.
    pub(super) fn new(
        task: RecordId,
        body: Box<dyn Repeated>,
        (index, first_access): (usize, usize),
        edges: u32,
        step: usize,
    ) -> Self {
        Node {
            closed: Closed::new(),
            rest: EventCounter::new(),
            step: AtomicUsize::new(step),
            run: AtomicPtr::default(),
            body,
            task,
            index: index as u32,
            first_access: first_access as u32,
            edges,
        }
    }

    /// Lets the record find the node and the node its run, which does not move any more.
    pub(super) fn link(&self, run: &Run) {
        self.run.store(std::ptr::from_ref(run).cast_mut(), Ordering::Relaxed);
        record(self.task).set_node(self);
    }

    /// The node of a record with the role `Replayed`.
    #[inline]
    fn of(record: &Record) -> &'static Node {
        // SAFETY: the record of a node is linked to it before the first task of the run is ready,
        // and whoever asks has a unit of the task, whose run ends after it. The lifetime is not
        // handed out.
        unsafe { &*record.node() }
    }

    #[inline]
    fn run(&self) -> &'static Run {
        // SAFETY: linked as above, and the run owns this node.
        unsafe { &*self.run.load(Ordering::Relaxed) }
    }

    #[inline]
    fn record(&self) -> &'static Record {
        record(self.task)
    }

    #[inline]
    fn is_last(&self, run: &Run) -> bool {
        run.steps - self.step.load(Ordering::Relaxed) <= run.turns
    }

    /// The tiles are there.
    pub(super) fn let_go(task: RecordId) {
        if record(task).pending.take(1) {
            Node::of(record(task)).release();
        }
    }

    /// Queues the task: nothing holds it back any more.
    #[inline]
    fn release(&self) {
        let record = self.record();
        record.pending.set(SPAWNING + self.edges);
        scheduler::schedule(GroupInner::of_live_task(record), self.task, Reason::Released);
    }

    #[inline]
    fn follow(&self, change: Change, failure: Option<&Arc<Failure>>) {
        let run = self.run();
        for edge in run.plan.edges_of(self.index as usize) {
            if !change.completes(edge.accesses) {
                continue;
            }
            let next = &run.nodes[edge.to as usize];
            if let Some(failure) = failure
                && edge.to > self.index
            {
                next.record().poison(failure);
            }
            if next.record().pending.take(1) {
                next.release();
            }
        }
    }
}

/// Begins the next run of a ready task. Says with what, unless it must not run.
#[inline]
pub(crate) fn begin(record: &Record) -> Option<&'static Node> {
    let node = Node::of(record);
    let accesses = record.access_count();
    node.closed.reset();
    if accesses >= BITS {
        node.rest.set((accesses - BITS + 1) as u32);
    }
    record.open.set(1 + accesses as u32);
    (!node.run().has_failed()).then_some(node)
}

impl Node {
    /// Runs the body, to its end or to its first await.
    #[inline]
    pub(crate) fn call(&self) -> Poll<()> {
        self.body.run(self.task, self.step.load(Ordering::Relaxed))
    }
}

/// The body of a task has ended or awaits: what it has closed counts together with what others do.
#[inline]
pub(crate) fn pause(record: &Record) {
    let node = Node::of(record);
    let accesses = record.access_count();
    let all = if accesses >= BITS { u32::MAX } else { (1 << accesses) - 1 };
    if let Some(change) = node.closed.publish(all) {
        node.follow(change, record.failure().as_ref());
    }
}

/// Closes access number `access` of a task: whoever waits for it may become ready.
#[inline]
pub(crate) fn close(record: &Record, access: usize) {
    let node = Node::of(record);
    let failure = record.failure();
    let run = node.run();
    if let Some(failure) = &failure {
        run.fail(failure);
    }
    if access < BITS - 1 || node.rest.take(1) {
        let bit = 1 << access.min(BITS - 1);
        let change = node.closed.close(bit, current() == Some(node.task));
        node.follow(change, failure.as_ref());
    }
    if node.is_last(run) {
        run.leave_tiles(node.first_access as usize + access);
    }
    resolve_access(node.task);
}

/// A run of the task is complete: makes it wait for the next, or ends it.
#[inline]
pub(crate) fn complete(record: &Record) {
    let node = Node::of(record);
    let run = node.run();
    if let Some(failure) = record.take_failure() {
        run.fail(&failure);
        GroupInner::of_live_task(record).note_failure(failure);
    }
    if node.is_last(run) {
        // Nothing for a report: what the others wait for is elsewhere.
        record.state.set(Phase::Free);
        return run.leave();
    }
    node.step.store(node.step.load(Ordering::Relaxed) + run.turns, Ordering::Relaxed);
    record.state.set(Phase::Created);
    if record.pending.take(SPAWNING) {
        node.release();
    }
}
