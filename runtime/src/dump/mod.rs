//! Snapshots of the tasks of a running program, and of the accesses that they wait for.
//!
//! Records are read while their tasks move on, without a lock and without delaying any thread: a
//! task that has moved on while it was read is read again, and left out if it changes every time.
//! So a dump is not of one instant of the program, unless that is stuck. No pointer of a record is
//! followed, as its array and its group may be gone. Only the parent is read under a lock, that of
//! the task's own record.

mod graphviz;
mod text;

use std::collections::HashMap;
use std::sync::Arc;

use crate::data::{ArrayLabel, Mode, Rect};
use crate::group::GroupInner;
use crate::record::{
    AccessId, Accesses, Phase, Record, RecordId, SPAWNING, for_each_record, record,
};
use crate::scheduler::Shared;

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

/// Number of attempts to read a task that moves on.
const ATTEMPTS: usize = 3;

impl Dump {
    pub(crate) fn take(shared: &Shared) -> Self {
        let mut notes = String::new();
        shared.hang.note(&mut notes);
        let mut tasks: Vec<Task> = Vec::new();
        let groups = shared.groups();
        let names: Vec<Arc<str>> = groups.iter().map(|group| Arc::from(group.name())).collect();
        for_each_record(|id, task| {
            tasks.extend((0..ATTEMPTS).find_map(|_| snapshot(id, task, &groups, &names)));
        });
        for [spawner, inner] in shared.helps() {
            let inside = |task: &&mut Task| task.id == inner && task.standing == Standing::Running;
            let spawner = label_of(spawner);
            tasks.iter_mut().find(inside).into_iter().for_each(|task| task.spawner = Some(spawner));
        }
        tasks.sort_by_key(|task| task.standing);
        Dump { workers: shared.workers(), busy: shared.busy_workers(), notes, tasks }
    }

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

/// Reads a record. `None`: it belongs to no task of these groups, or has moved on meanwhile.
fn snapshot(
    id: RecordId,
    task: &'static Record,
    groups: &[Arc<GroupInner>],
    names: &[Arc<str>],
) -> Option<Task> {
    let (generation, phase) = task.state.phase();
    let group = groups.iter().position(|group| group.is_of(task))?;
    if task.owner() != id {
        return None;
    }
    let pending = task.pending.units();
    let standing = match phase {
        Phase::Free => return None,
        // Rest of the bias of a spawn once all edges are followed.
        Phase::Created if pending > SPAWNING / 2 => Standing::Ready,
        Phase::Created => Standing::Waiting,
        Phase::Scheduled => Standing::Ready,
        Phase::Running | Phase::Notified => Standing::Running,
        Phase::Suspended => Standing::Suspended,
        Phase::Ended => Standing::Ended,
    };
    let seen = Task {
        id,
        label: task.label().text(),
        parent: task.parent().map(|id| Parent { id, label: label_of(id) }),
        group: Arc::clone(&names[group]),
        standing,
        pending,
        acted: task.may_be_held(),
        waits_for: task.waits_for(),
        spawner: None,
        accesses: Accesses::of(task).filter_map(snapshot_of_access).collect(),
    };
    (task.state.phase() == (generation, phase)).then_some(seen)
}

fn snapshot_of_access(access: AccessId) -> Option<Access> {
    let (slot, generation) = (access.slot(), access.generation());
    // An access that was passed on shows as those of the children.
    let is_shown = slot.head.is_open(generation) && !slot.head.is_passed_on(generation);
    is_shown.then(|| {
        let mut waiting: Vec<RecordId> = Vec::new();
        for task in access.waiting() {
            // A task may wait in several tiles.
            if !waiting.contains(&task) {
                waiting.push(task);
            }
        }
        let (mode, array, rect) = (slot.mode(), ArrayLabel::at(slot.array().addr()), slot.rect());
        Access { mode, array, rect, waiting }
    })
}

/// Returns the label of a task, whose record may be of another task by now.
fn label_of(task: RecordId) -> &'static str {
    record(task).label().text()
}
