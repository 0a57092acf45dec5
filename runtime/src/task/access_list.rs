//! The accesses and edges of a task by number, wherever its records carry them.

use super::record::{ACCESSES, EDGES};
use super::{RecordId, pool, record};
use crate::access::{AccessId, EdgeId};

/// Access number `index` of a task that has that many.
#[inline]
pub(crate) fn access(task: RecordId, index: usize) -> AccessId {
    let (id, index) = carrier(task, index, ACCESSES);
    AccessId::new(id, index)
}

/// Edge number `index` of an unshared task; there is always room for one more.
#[inline]
pub(crate) fn edge(task: RecordId, index: usize) -> EdgeId {
    let (id, index) = carrier(task, index, EDGES);
    EdgeId::new(id, index)
}

/// The record that holds item `index` when each holds `per_record`, added if it is missing.
#[inline]
fn carrier(task: RecordId, mut index: usize, per_record: usize) -> (RecordId, usize) {
    let mut id = task;
    while index >= per_record {
        id = match record(id).more() {
            Some(more) => more,
            None => add_record(task, id),
        };
        index -= per_record;
    }
    (id, index)
}

#[cold]
fn add_record(task: RecordId, last: RecordId) -> RecordId {
    let more = pool::allocate();
    let owner = record(task);
    record(more).create(task, owner.group(), owner.label());
    record(last).set_more(more);
    more
}

/// Frees the records of a complete task.
#[inline]
pub(super) fn free_all(task: RecordId) {
    let mut next = Some(task);
    while let Some(id) = next {
        let freed = record(id);
        next = freed.more();
        freed.state.set(super::Phase::Free);
        pool::free(id);
    }
}
