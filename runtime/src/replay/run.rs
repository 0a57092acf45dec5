//! The replay of a graph, through all its iterations.
//!
//! The replay begins in a task that has every tile of the graph as `input` or `inout`, and so waits
//! for the tasks spawned before. Each tile is released, and tasks spawned later may go on, when the
//! last access of the last iteration to it has closed. An event keeps that task incomplete, and
//! with it every wait for the group, until every task of the graph has run for the last time.
//!
//! A task that fails stops the run: no further task begins, and the failure becomes that of the
//! task which holds the tiles. Each task has one more step, in which it only releases its accesses.
#![allow(unsafe_code, reason = "owns itself between the first task and the last")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use talpf_primitives::Mutex;

use super::plan::Plan;
use super::replayed_task::ReplayedTask;
use super::waits::Waits;
use crate::callback;
use crate::error::{Error, Failure};
use crate::group::GroupInner;
use crate::guard::Hold;
use crate::record::{EventCounter, RecordId, record, running};
use crate::task::{free_task, resolve};

/// The tasks of a graph and their shared state.
pub(super) struct Run {
    pub(super) tasks: Box<[ReplayedTask]>,
    /// Edges that each task waits for.
    pub(super) waits: Box<[Waits]>,
    pub(super) plan: Arc<Plan>,
    steps: usize,
    /// Steps of an iteration.
    pub(super) unroll: usize,
    failed: AtomicBool,
    /// Actions of the first failure.
    on_failure: Mutex<Vec<OnFailure>>,
    /// Number of tasks that have not run for the last time.
    left: EventCounter,
    tiles: Box<[Tile]>,
    holder: Option<Holder>,
}

/// An action that runs once, if a failed task stops the run.
pub(super) type OnFailure = Box<dyn FnOnce(Error) + Send>;

/// A tile and the accesses of the last iteration that have not closed.
struct Tile {
    hold: Mutex<Option<Hold>>,
    users: EventCounter,
}

/// A unit of the completion of the task that holds the tiles.
struct Holder {
    task: RecordId,
}

impl Holder {
    /// Takes a unit of the task that runs. `None`: it has too many, and fails.
    fn of_current_task() -> Option<Self> {
        let task = running::current()?;
        // The running body holds a unit.
        record(task).open.add_kept("number of pending events of a task").ok()?;
        Some(Holder { task })
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // SAFETY: the unit that this was made with.
        unsafe { resolve(self.task, 1) };
    }
}

impl Run {
    pub(super) fn new(
        tasks: Box<[ReplayedTask]>,
        plan: Arc<Plan>,
        (steps, unroll): (usize, usize),
        on_failure: Vec<OnFailure>,
    ) -> Box<Self> {
        // One more, until the tiles are held.
        let waits = plan.within.iter().map(|edges| Waits::new(edges + 1)).collect();
        let left = counter(tasks.len() as u32);
        let failed = AtomicBool::new(false);
        Box::new(Run {
            tasks,
            waits,
            plan,
            steps,
            unroll,
            failed,
            on_failure: Mutex::new(on_failure),
            left,
            tiles: Box::default(),
            holder: None,
        })
    }

    /// Starts the first iteration, in the task that holds the tiles.
    pub(super) fn start(mut self: Box<Self>, holds: Vec<Hold>) {
        let Some(holder) = Holder::of_current_task() else {
            return;
        };
        let task = holder.task;
        self.holder = Some(holder);
        let tile = |(hold, tile): (Hold, &super::plan::Tile)| Tile {
            hold: Mutex::new(Some(hold)),
            users: counter(tile.users),
        };
        self.tiles = holds.into_iter().zip(&self.plan.tiles).map(tile).collect();
        let this = Box::into_raw(self);
        // SAFETY: no task of the run has begun, and it lives until the last one has run for the
        // last time.
        let run: &'static Run = unsafe { &*this };
        run.tasks.iter().for_each(|task| task.link(this));
        run.note_graph(task);
        // The last task that is released may end the run, which is not touched after that.
        for index in 0..run.tasks.len() {
            if run.waits[index].follow_edge() {
                run.tasks[index].release(run, task);
            }
        }
    }

    /// Adds the graph to the recording of all tasks, if there is one.
    fn note_graph(&self, holder: RecordId) {
        // SAFETY: the holder runs.
        let group = unsafe { GroupInner::of_live_task(record(holder)) };
        let Some(graph) = &group.shared.config.graph else {
            return;
        };
        let tasks = self.tasks.iter().map(|task| record(task.task));
        graph.note_iteration(holder, group.head(), tasks, self.plan.edges(), self.steps);
    }

    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Stops the run. Called before the access closes that the failure poisons.
    #[cold]
    pub(super) fn fail(&self, failure: &Arc<Failure>) {
        self.failed.store(true, Ordering::Relaxed);
        if let Some(holder) = &self.holder {
            record(holder.task).share_failure(failure);
        }
        let actions = std::mem::take(&mut *self.on_failure.lock());
        for action in actions {
            let called = callback::call("an action of `on_failure`", || {
                action(Error::of_task(Arc::clone(failure)))
            });
            called.unwrap_or_else(|reason| self.fail_holder(reason));
        }
    }

    /// Fails the task that holds the tiles: before the run starts, the task that runs on this
    /// thread.
    #[cold]
    fn fail_holder(&self, reason: String) {
        let holder = self.holder.as_ref().map(|holder| holder.task).or_else(running::current);
        if let Some(holder) = holder {
            record(holder).fail(reason);
        }
    }

    /// Releases the tiles of a closed access of the last iteration, given by its number among all.
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

    /// Counts a task that has run for the last time. The last one frees the run.
    ///
    /// # Safety
    /// `run` is the pointer that `start` has linked tasks with. The caller does this once for each
    /// task, and uses nothing of the run, or of the replayed task, after that.
    #[cold]
    pub(super) unsafe fn leave(run: *mut Run) {
        // SAFETY: it lives, as this task is left.
        let is_last = unsafe { (*run).left.take(1) };
        if is_last {
            // SAFETY: `start` has made the pointer of its box, and no task is left that could reach
            // it.
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
        for task in std::mem::take(&mut self.tasks) {
            free_task(task.task);
            if let Err(reason) = callback::call("a body that drops", || drop(task)) {
                self.fail_holder(reason);
            }
        }
    }
}
