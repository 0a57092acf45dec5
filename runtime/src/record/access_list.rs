//! The accesses and edges of a task by number, in its record and its continuation records.
#![allow(unsafe_code, reason = "makes ids of stored indices")]

use std::ops::Range;

use super::{ACCESSES, AccessSlot, EDGES, Edge, EdgeId, Phase, Record, RecordId, pool, record};

/// Largest number of waiting tasks that a report names for one access.
const REPORTED: usize = 8;

/// An access by the record that carries it.
#[derive(Clone, Copy)]
pub struct AccessId {
    carrier: &'static Record,
    index: usize,
}

impl PartialEq for AccessId {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.carrier, other.carrier) && self.index == other.index
    }
}

impl AccessId {
    #[inline]
    pub(crate) fn new(carrier: &'static Record, index: usize) -> Self {
        AccessId { carrier, index }
    }

    /// Returns the generation of the record, which distinguishes the access from earlier ones in
    /// its slot.
    #[inline]
    pub(crate) fn generation(self) -> u32 {
        self.carrier.generation()
    }

    /// Returns the record that carries the access, and its number there.
    #[inline]
    pub(crate) fn place(self) -> (&'static Record, usize) {
        (self.carrier, self.index)
    }

    /// Returns the task that declares the access.
    #[inline]
    pub(crate) fn task(self) -> RecordId {
        self.carrier.owner()
    }

    /// Returns the number of the access in its task.
    #[inline]
    pub(crate) fn number(self, owner: &'static Record) -> usize {
        let is_own = std::ptr::eq(self.carrier, owner);
        self.index + if is_own { 0 } else { self.carrier.accesses_before() }
    }

    /// Returns the tasks that wait for the access, if it is open. For reports: they may be moving
    /// on.
    pub(crate) fn waiting(self) -> Vec<RecordId> {
        // SAFETY: the lists of a head hold edges only.
        let edge = |bits| unsafe { EdgeId::from_bits(bits) }.edge();
        let first = self.slot().head.first(self.generation()).map(edge);
        std::iter::successors(first, |&current| current.next().map(edge))
            .take(REPORTED)
            .map(|edge: &Edge| edge.waiter().task())
            .collect()
    }

    /// Returns the parent's access that contains a writing access, if its task is a child.
    pub(crate) fn lender(self) -> Option<AccessId> {
        let parent = record(self.task()).parent()?;
        let slot = self.slot();
        Accesses::of(record(parent)).find(|lender| {
            let lender = lender.slot();
            lender.array() == slot.array() && lender.writes() && lender.rect().covers(&slot.rect())
        })
    }

    #[inline]
    pub(crate) fn slot(self) -> &'static AccessSlot {
        &self.carrier.accesses[self.index]
    }
}

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

/// Room for the edges of an unshared task: in its own record, and in continuation records.
pub(crate) struct EdgeRoom {
    task: RecordId,
    carrier: RecordId,
    /// Number of the first edge in that record.
    first: usize,
}

impl EdgeRoom {
    #[inline]
    pub(crate) fn of(task: RecordId) -> Self {
        EdgeRoom { task, carrier: task, first: 0 }
    }

    /// Returns the id of edge number `index`. Called with rising numbers, some of them twice.
    #[inline]
    pub(crate) fn place(&mut self, index: usize) -> EdgeId {
        if index >= self.first + EDGES {
            self.add_room(index);
        }
        EdgeId::new(self.carrier, index - self.first)
    }

    #[cold]
    fn add_room(&mut self, index: usize) {
        while index >= self.first + EDGES {
            self.carrier = carrier_after(self.task, self.carrier);
            self.first += EDGES;
        }
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
