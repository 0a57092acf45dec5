//! Snapshots of the tasks of a running program, and of the accesses that they wait for.
//!
//! Records are read while their tasks move on, without a lock and without delaying any thread: a
//! task that has moved on while it was read is read again, and left out if it changes every time.
//! So a dump is not of one instant of the program, unless that is stuck. No pointer of a record is
//! followed, as its array and its group may be gone. Only the parent is read under a lock, that of
//! the task's own record.

mod graphviz;
mod snapshot;
mod text;

use std::collections::HashMap;
use std::sync::Arc;

use crate::data::{ArrayLabel, Mode, Rect};
use crate::record::RecordId;

/// The tasks of a runtime that are not complete, and the accesses that they wait for. The text has
/// a line for each task and each open access; running tasks come first.
#[derive(Clone, Debug, Default)]
pub struct Dump {
    workers: usize,
    /// Number of workers that are in a task.
    busy: usize,
    notes: String,
    tasks: Vec<Task>,
}

/// The state of a task, as a dump shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Standing {
    /// A worker is in the body.
    Running,
    /// The task is in a queue.
    Ready,
    /// The async body waits to be woken.
    Suspended,
    /// The body has ended; guards or events are open.
    Ended,
    /// The task waits for accesses of earlier tasks, for a tile lock, or for its actions.
    Waiting,
}

#[derive(Clone, Debug)]
struct Task {
    id: RecordId,
    label: &'static str,
    /// Parent of a child.
    parent: Option<Parent>,
    group: Arc<str>,
    standing: Standing,
    /// Number of earlier accesses that are open, or 0 for a tile lock; number of holds if `acted`.
    pending: u32,
    acted: bool,
    waits_for: Option<&'static str>,
    /// Label of the spawner, for a task that runs inside a spawn.
    spawner: Option<&'static str>,
    accesses: Vec<Access>,
}

#[derive(Clone, Copy, Debug)]
struct Parent {
    id: RecordId,
    label: &'static str,
}

#[derive(Clone, Debug)]
struct Access {
    mode: Mode,
    array: Option<ArrayLabel>,
    rect: Rect,
    /// Tasks that wait for the access.
    waiting: Vec<RecordId>,
}

impl Dump {
    /// Counts the tasks in that state.
    pub fn count(&self, standing: Standing) -> usize {
        self.tasks.iter().filter(|task| task.standing == standing).count()
    }

    /// Returns the labels of the tasks in that state.
    pub fn labels(&self, standing: Standing) -> impl Iterator<Item = &'static str> {
        self.tasks.iter().filter(move |task| task.standing == standing).map(|task| task.label)
    }

    /// Returns the graph of these tasks for `dot` of Graphviz: a frame for each group, an edge from
    /// each open access to every task that waits for it.
    pub fn to_graphviz(&self) -> String {
        graphviz::graph(self)
    }

    /// Returns, by task, the tasks whose accesses it waits for.
    fn holders(&self) -> HashMap<RecordId, Vec<&Task>> {
        let mut holders: HashMap<RecordId, Vec<&Task>> = HashMap::new();
        for task in &self.tasks {
            for waiting in task.accesses.iter().flat_map(|access| &access.waiting) {
                let known = holders.entry(*waiting).or_default();
                if known.last().is_none_or(|last| last.id != task.id) {
                    known.push(task);
                }
            }
        }
        holders
    }

    /// Returns, by task, the number of children that are not complete.
    fn children(&self) -> HashMap<RecordId, usize> {
        let mut children = HashMap::new();
        for parent in self.tasks.iter().filter_map(|task| task.parent) {
            *children.entry(parent.id).or_default() += 1;
        }
        children
    }
}
