//! A graph on its way through its iterations.
//!
//! It begins in a task that has every tile of the graph as `input` or `inout`, and so waits for
//! what was spawned before. Each tile goes back, and lets tasks go on that were spawned after, when
//! the last access of the last iteration to it has closed. An event keeps that task, and with it
//! whoever waits for the group, until every task of the graph has run for the last time.
//!
//! A task that fails stops the run: nothing of it that has not begun runs, and the failure becomes
//! that of the task which holds the tiles. Each task has one more step, in which it does nothing but
//! let go.
#![allow(unsafe_code, reason = "owns itself between the first task and the last")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use talpf_primitives::Mutex;

use super::node::Node;
use super::plan::Plan;
use super::waits::Waits;
use crate::callback;
use crate::error::Failure;
use crate::group::GroupInner;
use crate::guard::Hold;
use crate::task::{EventCounter, PendingEvent, RecordId, current, free_task, record};

/// The tasks of a graph and what they share.
pub(super) struct Run {
    pub(super) nodes: Box<[Node]>,
    /// By task.
    pub(super) waits: Box<[Waits]>,
    pub(super) plan: Arc<Plan>,
    steps: usize,
    /// Steps of an iteration.
    pub(super) turns: usize,
    failed: AtomicBool,
    /// Tasks that have not run for the last time.
    left: EventCounter,
    tiles: Box<[Tile]>,
    holder: Option<Holder>,
}

/// A tile and the accesses of the last iteration that have not closed.
struct Tile {
    hold: Mutex<Option<Hold>>,
    users: EventCounter,
}

/// The task that holds the tiles.
struct Holder {
    task: RecordId,
    _event: PendingEvent,
}

impl Run {
    pub(super) fn new(
        nodes: Box<[Node]>,
        plan: Arc<Plan>,
        (steps, turns): (usize, usize),
    ) -> Box<Self> {
        // One more, until the tiles are there.
        let waits = plan.within.iter().map(|edges| Waits::new(edges + 1)).collect();
        let left = counter(nodes.len() as u32);
        let failed = AtomicBool::new(false);
        Box::new(Run {
            nodes,
            waits,
            plan,
            steps,
            turns,
            failed,
            left,
            tiles: Box::default(),
            holder: None,
        })
    }

    /// Lets the first iteration begin, in the task that has the tiles.
    pub(super) fn start(mut self: Box<Self>, holds: Vec<Hold>) {
        let Some((task, event)) = current().zip(PendingEvent::of_current_task().ok()) else {
            return;
        };
        self.holder = Some(Holder { task, _event: event });
        let tile = |(hold, tile): (Hold, &super::plan::Tile)| Tile {
            hold: Mutex::new(Some(hold)),
            users: counter(tile.users),
        };
        self.tiles = holds.into_iter().zip(&self.plan.tiles).map(tile).collect();
        let this = Box::into_raw(self);
        // SAFETY: no task of it has run yet, and it lives until the last one has for the last time.
        let run: &'static Run = unsafe { &*this };
        run.nodes.iter().for_each(|node| node.link(this));
        run.note(task);
        // The last task that is let go may end the run: nothing of it is looked at after that.
        for index in 0..run.nodes.len() {
            if run.waits[index].follow_edge() {
                run.nodes[index].release(run);
            }
        }
    }

    /// Notes the graph in that of the whole run, if there is one.
    fn note(&self, holder: RecordId) {
        // SAFETY: the holder runs.
        let group = unsafe { GroupInner::of_live_task(record(holder)) };
        let Some(graph) = &group.shared.config.graph else {
            return;
        };
        let tasks = self.nodes.iter().map(|node| record(node.task));
        graph.note_iteration(holder, group, tasks, self.plan.edges(), self.steps);
    }

    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Stops the run. Called before the access closes that the failure spoils.
    #[cold]
    pub(super) fn fail(&self, failure: &Arc<Failure>) {
        self.failed.store(true, Ordering::Relaxed);
        if let Some(holder) = &self.holder {
            record(holder.task).share_failure(failure);
        }
    }

    /// Fails the task that holds the tiles. Before the run starts that is the one which runs here.
    #[cold]
    fn fail_holder(&self, reason: String) {
        let holder = self.holder.as_ref().map(|holder| holder.task).or_else(current);
        if let Some(holder) = holder {
            record(holder).fail(reason);
        }
    }

    /// An access of the last iteration has closed, by its number among all.
    #[cold]
    pub(super) fn leave_tiles(&self, access: usize) {
        for tile in self.plan.touched_by(access) {
            let tile = &self.tiles[*tile as usize];
            if tile.users.take(1) {
                let hold = tile.hold.lock().take();
                drop(hold);
            }
        }
    }

    /// A task has run for the last time. With the last of them the run goes.
    ///
    /// # Safety
    /// `run` is what `start` has linked nodes with. The caller does this once for each task, and uses
    /// nothing of the run, or of the task's node, after that.
    #[cold]
    pub(super) unsafe fn leave(run: *mut Run) {
        // SAFETY: it lives, as this task is left.
        let is_last = unsafe { (*run).left.take(1) };
        if is_last {
            // SAFETY: `start` has made the pointer of its box, and no task is left that could reach it.
            drop(unsafe { Box::from_raw(run) });
        }
    }
}

fn counter(units: u32) -> EventCounter {
    let counter = EventCounter::new();
    counter.set(units);
    counter
}

impl Drop for Run {
    fn drop(&mut self) {
        for node in std::mem::take(&mut self.nodes) {
            free_task(node.task);
            if let Err(reason) = callback::call("a body that drops", || drop(node)) {
                self.fail_holder(reason);
            }
        }
    }
}
