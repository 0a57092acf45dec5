//! What waits for what, in a program that runs.
//!
//! Records are read while their tasks move on, without a lock and without keeping anybody: a task
//! that has moved on while it was looked at is looked at again, and left out if it does not hold
//! still. So a dump is not one instant of the program; in one that is stuck it is. No pointer of a
//! record is followed: its array and its group may be gone. Only who its parent is a child says under
//! a lock, that of its own record.

mod graphviz;
mod text;

use std::collections::HashMap;
use std::sync::Arc;

use crate::access::AccessId;
use crate::data::{ArrayLabel, Mode, Rect};
use crate::group::GroupInner;
use crate::scheduler::Shared;
use crate::task::{Accesses, Phase, Record, RecordId, SPAWNING, for_each_record, record};

/// The tasks of a runtime that are not complete, and what they wait for. Its text has a line a task
/// and a line an open access; what runs comes first.
#[derive(Clone, Debug, Default)]
pub struct Dump {
    workers: usize,
    /// Workers that are in a task.
    busy: usize,
    notes: String,
    tasks: Vec<Task>,
}

/// Where in its life a task is, as a dump shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Standing {
    /// A worker is in its body.
    Running,
    /// It lies in a queue.
    Ready,
    /// Its async body waits to be woken.
    Suspended,
    /// Its body has ended; guards or events are open.
    Ended,
    /// Accesses of earlier tasks keep it, or its turn, or its actions.
    Waiting,
}

#[derive(Clone, Debug)]
struct Task {
    id: RecordId,
    label: &'static str,
    /// Of a child.
    parent: Option<Parent>,
    group: Arc<str>,
    standing: Standing,
    /// Earlier accesses that are open, or 0 for a turn; what holds it back if `acted`.
    pending: u32,
    acted: bool,
    waits_for: Option<&'static str>,
    /// Of one that runs inside a spawn: who spawns.
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
    /// Tasks that wait for it.
    waiting: Vec<RecordId>,
}

/// Looks at a task that does not hold still.
const LOOKS: usize = 3;

impl Dump {
    pub(crate) fn take(shared: &Shared) -> Self {
        let mut notes = String::new();
        shared.hang.note(&mut notes);
        let mut tasks: Vec<Task> = Vec::new();
        let groups = shared.groups();
        let names: Vec<Arc<str>> = groups.iter().map(|group| Arc::from(group.name())).collect();
        for_each_record(|id, task| {
            tasks.extend((0..LOOKS).find_map(|_| look(id, task, &groups, &names)));
        });
        for [spawner, inner] in shared.helps() {
            let inside = |task: &&mut Task| task.id == inner && task.standing == Standing::Running;
            let spawner = label_of(spawner);
            tasks.iter_mut().find(inside).into_iter().for_each(|task| task.spawner = Some(spawner));
        }
        tasks.sort_by_key(|task| task.standing);
        Dump { workers: shared.workers(), busy: shared.busy_workers(), notes, tasks }
    }

    /// How many tasks stand like that.
    pub fn count(&self, standing: Standing) -> usize {
        self.tasks.iter().filter(|task| task.standing == standing).count()
    }

    /// Labels of the tasks that stand like that.
    pub fn labels(&self, standing: Standing) -> impl Iterator<Item = &'static str> {
        self.tasks.iter().filter(move |task| task.standing == standing).map(|task| task.label)
    }

    /// The graph of these tasks for `dot` of Graphviz: a frame a group, an edge from each open
    /// access to every task that waits for it.
    pub fn to_graphviz(&self) -> String {
        graphviz::graph(self)
    }

    /// By task, the tasks whose accesses it waits for.
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

    /// By task, how many children it has that are not complete.
    fn children(&self) -> HashMap<RecordId, usize> {
        let mut children = HashMap::new();
        for parent in self.tasks.iter().filter_map(|task| task.parent) {
            *children.entry(parent.id).or_default() += 1;
        }
        children
    }
}

/// One look at a record. `None`: it belongs to no task of these groups, or has moved on meanwhile.
fn look(
    id: RecordId,
    task: &'static Record,
    groups: &[Arc<GroupInner>],
    names: &[Arc<str>],
) -> Option<Task> {
    let (generation, phase) = task.state.phase();
    let group = groups.iter().position(|group| std::ptr::eq(Arc::as_ptr(group), task.group()))?;
    if task.owner() != id {
        return None;
    }
    let pending = task.pending.units();
    let standing = match phase {
        Phase::Free => return None,
        // What is left of the bias of a spawn once all edges are followed.
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
        accesses: Accesses::of(task).filter_map(look_at_access).collect(),
    };
    (task.state.phase() == (generation, phase)).then_some(seen)
}

fn look_at_access(access: AccessId) -> Option<Access> {
    let (slot, generation) = (access.slot(), access.generation());
    // What was passed on is seen where the children have it.
    let is_shown = slot.head.is_open(generation) && !slot.head.is_passed_on(generation);
    is_shown.then(|| {
        let mut waiting: Vec<RecordId> = Vec::new();
        for task in access.waiting() {
            // It may wait in several tiles.
            if !waiting.contains(&task) {
                waiting.push(task);
            }
        }
        let (mode, array, rect) = (slot.mode(), ArrayLabel::at(slot.core()), slot.rect());
        Access { mode, array, rect, waiting }
    })
}

/// The label of a task, which may be another one by now.
fn label_of(task: RecordId) -> &'static str {
    record(task).label().text()
}
