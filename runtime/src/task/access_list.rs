//! The accesses and edges of a task by number, wherever its records carry them.

use std::ops::Range;

use super::record::{ACCESSES, EDGES};
use super::{Record, RecordId, pool, record};
use crate::access::{AccessId, EdgeId};

/// The accesses of a task that has records for them, in order.
#[derive(Clone)]
pub(crate) struct Accesses {
    carrier: &'static Record,
    /// The next one in that record.
    index: usize,
    left: usize,
}

impl Accesses {
    #[inline]
    pub(crate) fn of(task: &'static Record) -> Self {
        Accesses { carrier: task, index: 0, left: task.access_count() }
    }

    #[cold]
    fn next_carrier(&mut self) -> Option<()> {
        self.carrier = record(self.carrier.more()?);
        self.index = 0;
        Some(())
    }
}

impl ExactSizeIterator for Accesses {}

impl Iterator for Accesses {
    type Item = AccessId;

    #[inline]
    fn next(&mut self) -> Option<AccessId> {
        self.left = self.left.checked_sub(1)?;
        if self.index == ACCESSES {
            self.next_carrier()?;
        }
        let access = AccessId::new(self.carrier, self.index);
        self.index += 1;
        Some(access)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

/// Gives an unshared task the records that its accesses need beside its own.
#[inline]
pub(super) fn make_room(task: RecordId, accesses: usize) {
    if accesses > ACCESSES {
        carrier(task, accesses - 1, ACCESSES);
    }
}

/// Edge number `index` of an unshared task; there is always room for one more.
#[inline]
pub(crate) fn edge(task: RecordId, index: usize) -> EdgeId {
    if index < EDGES {
        return EdgeId::new(task, index);
    }
    let (id, index) = carrier(task, index, EDGES);
    EdgeId::new(id, index)
}

/// The record that holds item `index` when each holds `per_record`, added if it is missing.
#[cold]
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

fn add_record(task: RecordId, last: RecordId) -> RecordId {
    let more = pool::allocate_more();
    let owner = record(task);
    record(more).create(task, owner.group(), owner.label());
    record(last).set_more(more);
    more
}

/// Adds room for edges to a task that a unit of the caller's keeps from going on.
pub(crate) fn more_edges(task: RecordId) -> (RecordId, Range<usize>) {
    let more = pool::allocate_more();
    let owner = record(task);
    record(more).create(task, owner.group(), owner.label());
    let mut last = task;
    while let Err(next) = record(last).append(more) {
        last = next;
    }
    (more, 0..EDGES)
}

/// Frees the records of a complete task.
#[inline]
pub(super) fn free_all(task: RecordId) {
    if let Some(more) = free_one(task) {
        free_carriers(more);
    }
}

#[cold]
fn free_carriers(first: RecordId) {
    let mut next = Some(first);
    while let Some(carrier) = next {
        next = free_one(carrier);
    }
}

/// Frees a record, and hands back the one that carries on.
#[inline]
fn free_one(id: RecordId) -> Option<RecordId> {
    let freed = record(id);
    let more = freed.more();
    freed.state.set(super::Phase::Free);
    pool::free(id);
    more
}
