//! The accesses and edges of a task by number, in its record and its continuation records.

use std::ops::Range;

use super::{ACCESSES, EDGES, Phase, Record, RecordId, pool, record};
use crate::access::{AccessId, EdgeId};

/// An iterator over the accesses of a task that has records for them.
#[derive(Clone)]
pub(crate) struct Accesses {
    carrier: &'static Record,
    /// Index of the next access in that record.
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

/// Gives an unshared task the continuation records that its accesses need.
#[inline]
pub(crate) fn make_room(task: RecordId, accesses: usize) {
    if accesses > ACCESSES {
        add_carriers(task, accesses);
    }
}

#[cold]
fn add_carriers(task: RecordId, accesses: usize) {
    (1..accesses.div_ceil(ACCESSES)).fold(task, |last, _| carrier_after(task, last));
}

/// Edges of an unshared task for which its own record has no room.
pub(crate) struct MoreEdges {
    task: RecordId,
    carrier: RecordId,
    /// Number of the first edge in that record.
    first: usize,
}

impl MoreEdges {
    pub(crate) fn of(task: RecordId) -> Self {
        MoreEdges { task, carrier: task, first: 0 }
    }

    /// Returns the id of edge number `index`. Called with rising numbers, some of them twice.
    pub(crate) fn place(&mut self, index: usize) -> EdgeId {
        while index >= self.first + EDGES {
            self.carrier = carrier_after(self.task, self.carrier);
            self.first += EDGES;
        }
        EdgeId::new(self.carrier, index - self.first)
    }
}

/// Returns the continuation record of `task` after `last`, added if it is missing.
fn carrier_after(task: RecordId, last: RecordId) -> RecordId {
    record(last).more().unwrap_or_else(|| add_record(task, last))
}

fn add_record(task: RecordId, last: RecordId) -> RecordId {
    let more = pool::allocate_more();
    let owner = record(task);
    record(more).create(task, owner.group(), owner.label());
    let before = if last == task { 0 } else { record(last).accesses_before() };
    record(more).set_access_count(before + ACCESSES);
    record(last).set_more(more);
    more
}

/// Adds room for edges to a task that a unit of the caller keeps from going on.
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
pub(crate) fn free_all(task: RecordId) {
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

/// Frees a record, and returns its continuation record.
#[inline]
fn free_one(id: RecordId) -> Option<RecordId> {
    let freed = record(id);
    let more = freed.more();
    freed.state.set(Phase::Free);
    pool::free(id);
    more
}
