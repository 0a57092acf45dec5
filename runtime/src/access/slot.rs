//! Accesses and edges, stored in task records, which never move and are never freed.
//!
//! over 400 lines: the declared access, the stored one and the edges linked to it name each other.
#![allow(unsafe_code, reason = "says which accesses are closed, and makes ids of stored indices")]

use std::sync::Arc;

use talpf_primitives::{AtomicU32, Ordering};

use super::{OpenAccess, tile_lock};
use crate::data::{ArrayCore, Mode, Rect, Region};
use crate::error::{Error, Failure};
use crate::group::GroupInner;
use crate::record::{AccessHead, Accesses, Label, Record, RecordId, Role, record};
use crate::replay;
use crate::task;

/// Largest number of waiting tasks that a report names for one access.
const REPORTED: usize = 8;

/// A use of a region as a task declares it.
#[derive(Clone, Copy)]
pub struct Declared<'a> {
    core: &'a ArrayCore,
    rect: Rect,
    whole_tile: Option<u32>,
    mode: Mode,
    weak: bool,
    lender: Option<&'a AccessId>,
}

impl<'a> Declared<'a> {
    #[inline]
    pub(crate) fn new<T, D>(region: &Region<'a, T, D>, mode: Mode) -> Self {
        let (core, whole_tile) = (region.core(), region.whole_tile());
        let (rect, lender) = (region.rect(), region.lender());
        Declared { core, rect, whole_tile, mode, weak: false, lender }
    }

    /// Declares a region that the task only lends.
    pub(crate) fn weak<T, D>(region: &Region<'a, T, D>, mode: Mode) -> Self {
        Declared { weak: true, whole_tile: None, ..Declared::new(region, mode) }
    }

    /// Declares a tile of the same array.
    pub(crate) fn tile(&self, number: usize, mode: Mode) -> Self {
        let rect = self.core.tiles().rect_of(number);
        let whole_tile = (!rect.is_empty()).then_some(number as u32);
        Declared { rect, whole_tile, mode, weak: false, ..*self }
    }

    #[inline]
    pub(crate) fn core(&self) -> &'a ArrayCore {
        self.core
    }

    #[inline]
    pub(crate) fn rect(&self) -> Rect {
        self.rect
    }

    #[inline]
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the number of the tile that is the whole region, if it was declared as a tile of an
    /// array of the task's own group, and not just to be lent.
    #[inline]
    pub(crate) fn whole_tile(&self) -> Option<usize> {
        self.whole_tile.map(|tile| tile as usize)
    }

    #[inline]
    pub(crate) fn is_weak(&self) -> bool {
        self.weak
    }

    /// Returns the parent's access that the region lies in.
    #[inline]
    pub(crate) fn lender(&self) -> Option<AccessId> {
        self.lender.copied()
    }

    /// Returns `true` if the array belongs to `group`.
    #[inline]
    pub(crate) fn is_of_group(&self, group: &GroupInner) -> bool {
        std::ptr::eq(Arc::as_ptr(self.core.group()), group)
    }

    /// Checks that the array belongs to the runtime of `group`, the task's group.
    pub(crate) fn check_runtime(&self, group: &GroupInner, label: Label) -> Result<(), Error> {
        if Arc::ptr_eq(&self.core.group().shared, &group.shared) {
            return Ok(());
        }
        let (label, group, array) = (label.text(), group.name().to_owned(), self.core.label());
        Err(Error::OtherRuntime { label, group, array })
    }

    /// Checks a single access of a task, which may be a child of `parent`.
    #[inline]
    pub(crate) fn check(&self, label: Label, parent: Option<RecordId>) -> Result<(), Error> {
        match (self.lender, parent) {
            (None, None) => self.check_bounds(),
            _ => self.check_lent(label, parent),
        }
    }

    #[cold]
    fn check_lent(&self, label: Label, parent: Option<RecordId>) -> Result<(), Error> {
        let (rect, mode) = (self.rect, self.mode);
        let in_order = rect.row <= rect.row_end && rect.col <= rect.col_end;
        let lends = |lender: &AccessId| {
            let slot = lender.slot();
            Some(lender.task()) == parent
                && slot.rect().covers(&rect)
                && (slot.writes() || !mode.writes())
        };
        if in_order && self.lender.is_some_and(lends) {
            return Ok(());
        }
        let (label, array) = (label.text().to_owned(), self.core.label());
        Err(Error::NotLent { label, array, region: rect, mode })
    }

    #[inline]
    pub(crate) fn check_bounds(&self) -> Result<(), Error> {
        if self.whole_tile.is_some() { Ok(()) } else { self.core.check(self.rect) }
    }
}

/// Mode and weakness are kept in the lowest bits of the array's address.
const TAG_BITS: usize = 15;
const WEAK: usize = 1;
const _: () = assert!(align_of::<ArrayCore>() > TAG_BITS);

/// An access: its state and its region.
///
/// `core` and `rect` are written while the record is unshared and read by the task's body; the
/// atomics are there for the hang report, which may read a record that is being reused.
pub(crate) struct AccessSlot {
    pub(crate) head: AccessHead,
    core: std::sync::atomic::AtomicPtr<ArrayCore>,
    rows: [AtomicU32; 2],
    cols: [AtomicU32; 2],
}

impl AccessSlot {
    pub(crate) fn new() -> Self {
        AccessSlot {
            head: AccessHead::new(),
            core: Default::default(),
            rows: [AtomicU32::new(0), AtomicU32::new(0)],
            cols: [AtomicU32::new(0), AtomicU32::new(0)],
        }
    }

    #[inline]
    pub(crate) fn fill(&self, generation: u32, declared: &Declared<'_>) {
        let rect = declared.rect;
        self.head.open(generation);
        let tagged = std::ptr::from_ref(declared.core).cast_mut();
        let tag = (declared.mode as usize) << 1 | usize::from(declared.weak);
        let tagged = tagged.map_addr(|addr| addr | tag);
        self.core.store(tagged, std::sync::atomic::Ordering::Relaxed);
        self.rows[0].store(rect.row, Ordering::Relaxed);
        self.rows[1].store(rect.row_end, Ordering::Relaxed);
        self.cols[0].store(rect.col, Ordering::Relaxed);
        self.cols[1].store(rect.col_end, Ordering::Relaxed);
    }

    /// Returns the array, valid while the access is open.
    #[inline]
    pub(crate) fn core(&self) -> *const ArrayCore {
        self.core
            .load(std::sync::atomic::Ordering::Relaxed)
            .map_addr(|addr| addr & !TAG_BITS)
            .cast_const()
    }

    #[inline]
    fn tag(&self) -> usize {
        self.core.load(std::sync::atomic::Ordering::Relaxed).addr() & TAG_BITS
    }

    #[inline]
    pub(crate) fn writes(&self) -> bool {
        self.tag() > WEAK
    }

    /// Returns the failure by which the region is poisoned, if the task has failed.
    ///
    /// # Safety
    /// The access, of `task`, is open.
    #[inline]
    pub(super) unsafe fn poisoned_by(&self, task: &Record) -> Option<Arc<Failure>> {
        // SAFETY: by the contract of this function.
        let failure = if self.writes() { unsafe { task.failure() } } else { None };
        failure.filter(|_| !self.rect().is_empty())
    }

    /// Returns `true` if the task only lends the region.
    #[inline]
    pub(crate) fn is_weak(&self) -> bool {
        self.tag() & WEAK != 0
    }

    /// Returns `true` if two accesses exclude each other.
    #[inline]
    pub(crate) fn conflicts(&self, other: &AccessSlot) -> bool {
        if self.core() != other.core() || !self.mode().excludes(other.mode()) {
            return false;
        }
        let (rect, other_rect) = (self.rect(), other.rect());
        rect.overlaps(&other_rect) && !rect.is_empty() && !other_rect.is_empty()
    }

    pub(crate) fn mode(&self) -> Mode {
        match self.tag() >> 1 {
            0 => Mode::In,
            1 => Mode::Out,
            2 => Mode::InOut,
            3 => Mode::Concurrent,
            4 => Mode::Commutative,
            _ => Mode::Reduction,
        }
    }

    #[inline]
    pub(crate) fn rect(&self) -> Rect {
        Rect::new(
            self.rows[0].load(Ordering::Relaxed),
            self.rows[1].load(Ordering::Relaxed),
            self.cols[0].load(Ordering::Relaxed),
            self.cols[1].load(Ordering::Relaxed),
        )
    }
}

/// A link from an access to a task that waits for it. It lives in the waiting task's record.
pub(crate) struct Edge {
    waiter: AtomicU32,
    next: AtomicU32,
}

/// The waiting side of an edge: a task that waits to run or, for a region that it only lends, to be
/// complete.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Waiter(u32);

/// Mark of a waiter that waits to be complete, above any index of a record.
const TO_COMPLETE: u32 = 1 << 31;

impl Waiter {
    #[inline]
    pub(super) fn new(task: RecordId, weak: bool) -> Self {
        Waiter(task.index() | if weak { TO_COMPLETE } else { 0 })
    }

    #[inline]
    pub(super) fn task(self) -> RecordId {
        // SAFETY: `new` has put the index of an id there; that of an edge not set yet is 0, the
        // first.
        unsafe { RecordId::new(self.0 & !TO_COMPLETE) }
    }

    #[inline]
    pub(super) fn is_weak(self) -> bool {
        self.0 & TO_COMPLETE != 0
    }

    /// Follows an edge. With a failure, the waiting task is poisoned.
    ///
    /// # Safety
    /// The edge was linked and counted for the waiter, was taken from its access, and is followed
    /// once.
    #[inline]
    pub(super) unsafe fn follow(self, failure: Option<&Arc<Failure>>) {
        if self.is_weak() {
            // SAFETY: an edge of a weak access is a unit of its task's completion.
            return unsafe { self.complete() };
        }
        if let Some(failure) = failure {
            record(self.task()).poison(failure);
        }
        // SAFETY: by the contract of this function.
        unsafe { task::satisfy(self.task()) };
    }

    /// # Safety
    /// As for [`task::resolve`], of one unit.
    #[cold]
    unsafe fn complete(self) {
        // SAFETY: by the contract of this function.
        unsafe { task::resolve(self.task(), 1) };
    }
}

impl Edge {
    pub(crate) fn new() -> Self {
        Edge { waiter: AtomicU32::new(0), next: AtomicU32::new(0) }
    }

    #[inline]
    pub(super) fn set_waiter(&self, waiter: Waiter) {
        self.waiter.store(waiter.0, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn waiter(&self) -> Waiter {
        Waiter(self.waiter.load(Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn set_next(&self, next: Option<u32>) {
        self.next.store(next.unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn next(&self) -> Option<u32> {
        let next = self.next.load(Ordering::Relaxed);
        (next != u32::MAX).then_some(next)
    }
}

/// Record and index of an edge: a record has up to eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EdgeId(u32);

impl EdgeId {
    #[inline]
    pub(crate) fn new(record: RecordId, index: usize) -> Self {
        debug_assert!(index < 8);
        EdgeId(record.index() << 3 | index as u32)
    }

    /// # Safety
    /// `bits` are the [`bits`](Self::bits) of an id.
    #[inline]
    pub(super) unsafe fn from_bits(bits: u32) -> Self {
        EdgeId(bits)
    }

    #[inline]
    pub(super) fn bits(self) -> u32 {
        self.0
    }

    #[inline]
    pub(super) fn edge(self) -> &'static Edge {
        // SAFETY: `new` has put the index of an id there.
        let carrier = unsafe { RecordId::new(self.0 >> 3) };
        &record(carrier).edges[(self.0 & 7) as usize]
    }
}

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

    /// Returns the task that declares the access.
    #[inline]
    pub(crate) fn task(self) -> RecordId {
        self.carrier.owner()
    }

    /// Returns the number of the access in its task.
    #[inline]
    pub(super) fn number(self, owner: &'static Record) -> usize {
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
    pub(super) fn lender(self) -> Option<AccessId> {
        let parent = record(self.task()).parent()?;
        let slot = self.slot();
        Accesses::of(record(parent)).find(|lender| {
            let lender = lender.slot();
            lender.core() == slot.core() && lender.writes() && lender.rect().covers(&slot.rect())
        })
    }

    #[inline]
    pub(crate) fn slot(self) -> &'static AccessSlot {
        &self.carrier.accesses[self.index]
    }
}

/// Closes an access: its region is free, the tasks that waited for it may become ready, and its
/// own task may complete. Called when the guard of the access drops.
///
/// # Safety
/// The access is open and the caller's to close, which it does once: neither it nor a copy is used
/// afterwards, and nobody uses the region by it.
#[inline]
pub(crate) unsafe fn release(access: OpenAccess) {
    let AccessId { carrier, index } = *access;
    // SAFETY: by the contract of this function.
    if !unsafe { replay::close_here(carrier, index) } {
        // SAFETY: the same; it was not closed here.
        unsafe { release_slow(access) };
    }
}

/// Closes an access that is not of the replayed task whose body runs on this thread. Not inlined,
/// as the other path, so that a guard that drops saves no registers for either.
///
/// # Safety
/// As for [`release`].
#[inline(never)]
unsafe fn release_slow(access: OpenAccess) {
    let owning = record(access.task());
    if !owning.has_failed()
        && owning.role() != Role::Replayed
        && access.slot().mode() != Mode::Commutative
    {
        // SAFETY: by the contract of this function.
        unsafe { close(access, None) };
    } else {
        // SAFETY: by the contract of this function.
        unsafe { release_cold(access, owning) };
    }
}

/// Closes an access of a replayed or failed task, or one that holds tile locks.
///
/// # Safety
/// As for [`release`]; the access is of the task `owning`.
#[cold]
unsafe fn release_cold(access: OpenAccess, owning: &'static Record) {
    if owning.role() == Role::Replayed {
        // SAFETY: by the contract of this function.
        return unsafe { replay::close(owning, access.number(owning)) };
    }
    let slot = access.slot();
    // SAFETY: by the contract of this function.
    let failure = unsafe { slot.poisoned_by(owning) };
    if let Some(failure) = &failure {
        super::domain::poison(access, failure);
    }
    if slot.mode() == Mode::Commutative {
        // While the access is open, since that keeps the array.
        tile_lock::release_tile_locks(access);
    }
    // SAFETY: by the contract of this function.
    unsafe { close(access, failure.as_ref()) };
}

/// Closes an access whose tile locks are released and whose failure is recorded.
///
/// # Safety
/// As for [`release`].
#[inline]
pub(super) unsafe fn close(access: OpenAccess, failure: Option<&Arc<Failure>>) {
    let owner = access.task();
    if let Some(first) = access.slot().head.close(access.generation()) {
        // SAFETY: closing the access has taken its list.
        unsafe { follow(first, failure) };
    }
    // SAFETY: the unit of the access, which has closed.
    unsafe { task::resolve_access(owner) };
}

/// Follows the edges of a closed access. Not inlined, since most have none.
///
/// # Safety
/// `first` begins the list that the access had, which nobody else has.
#[inline(never)]
unsafe fn follow(first: u32, failure: Option<&Arc<Failure>>) {
    let mut next = Some(first);
    while let Some(bits) = next {
        // SAFETY: by the contract of this function.
        let edge = unsafe { EdgeId::from_bits(bits) }.edge();
        // Read first: once satisfied, the successor may run and its record be reused.
        next = edge.next();
        // SAFETY: by the contract of this function.
        unsafe { edge.waiter().follow(failure) };
    }
}
