//! Reading of the records of a running program.

use std::sync::Arc;

use super::{Access, Dump, Parent, Standing, Task};
use crate::data::ArrayLabel;
use crate::group::GroupInner;
use crate::record::{
    AccessId, Accesses, Phase, Record, RecordId, SPAWNING, for_each_record, record,
};
use crate::scheduler::Shared;

/// Number of attempts to read a task that moves on.
const ATTEMPTS: usize = 3;

impl Dump {
    /// Takes a snapshot of the tasks of a runtime.
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
pub(super) fn label_of(task: RecordId) -> &'static str {
    record(task).label().text()
}
