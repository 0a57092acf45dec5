//! Where accesses and edges live: inside task records, which never move and are never freed.

use super::{AccessHead, turns};
use crate::data::{ArrayCore, Mode, Rect, Region};
use crate::error::Error;
use crate::replay;
use crate::sync::{AtomicU32, Ordering};
use crate::task::{self, Record, RecordId, Role};

/// Most waiting tasks that a report names for one access.
const REPORTED: usize = 8;

/// A use of a region as a task declares it.
#[derive(Clone, Copy)]
pub struct Declared<'a> {
    core: &'a ArrayCore,
    rect: Rect,
    whole_tile: Option<u32>,
    mode: Mode,
}

impl<'a> Declared<'a> {
    #[inline]
    pub(crate) fn new<T, D>(region: &Region<'a, T, D>, mode: Mode) -> Self {
        let (core, whole_tile) = (region.core(), region.whole_tile());
        Declared { core, rect: region.rect(), whole_tile, mode }
    }

    /// The declaration of a tile of the same array.
    pub(crate) fn tile(&self, number: usize, mode: Mode) -> Self {
        let rect = self.core.rect_of_tile(number);
        Declared { core: self.core, rect, whole_tile: Some(number as u32), mode }
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

    /// The number of the tile that the region is all of, if it was declared as one.
    #[inline]
    pub(super) fn whole_tile(&self) -> Option<usize> {
        self.whole_tile.map(|tile| tile as usize)
    }

    /// The only way a single access can be wrong.
    #[inline]
    pub(crate) fn check_bounds(&self) -> Result<(), Error> {
        let (region, extent) = (self.rect, self.core.extent());
        let inside =
            extent.covers(&region) && region.row <= region.row_end && region.col <= region.col_end;
        if self.whole_tile.is_some() || inside {
            return Ok(());
        }
        Err(Error::RegionOutOfBounds { region, rows: extent.row_end, cols: extent.col_end })
    }
}

/// The mode is kept in the lowest bits of the array's address.
const MODE_BITS: usize = 7;
const _: () = assert!(align_of::<ArrayCore>() > MODE_BITS);

/// One access: its state, and what it reaches.
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
        let tagged = tagged.map_addr(|addr| addr | declared.mode as usize);
        self.core.store(tagged, std::sync::atomic::Ordering::Relaxed);
        self.rows[0].store(rect.row, Ordering::Relaxed);
        self.rows[1].store(rect.row_end, Ordering::Relaxed);
        self.cols[0].store(rect.col, Ordering::Relaxed);
        self.cols[1].store(rect.col_end, Ordering::Relaxed);
    }

    /// The array, valid while the access is open.
    #[inline]
    pub(crate) fn core(&self) -> *const ArrayCore {
        self.core
            .load(std::sync::atomic::Ordering::Relaxed)
            .map_addr(|addr| addr & !MODE_BITS)
            .cast_const()
    }

    #[inline]
    pub(crate) fn writes(&self) -> bool {
        self.core.load(std::sync::atomic::Ordering::Relaxed).addr() & MODE_BITS != 0
    }

    /// The array of an access that is open or about to be.
    #[inline]
    pub(crate) fn array(&self) -> &'static ArrayCore {
        ArrayCore::of_open_access(self.core())
    }

    /// Whether two accesses exclude each other.
    #[inline]
    pub(crate) fn conflicts(&self, other: &AccessSlot) -> bool {
        if self.core() != other.core() || !self.mode().excludes(other.mode()) {
            return false;
        }
        let (rect, other_rect) = (self.rect(), other.rect());
        rect.overlaps(&other_rect) && !rect.is_empty() && !other_rect.is_empty()
    }

    pub(crate) fn mode(&self) -> Mode {
        match self.core.load(std::sync::atomic::Ordering::Relaxed).addr() & MODE_BITS {
            0 => Mode::In,
            1 => Mode::Out,
            2 => Mode::InOut,
            3 => Mode::Concurrent,
            _ => Mode::Commutative,
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
    pub(crate) successor: AtomicU32,
    next: AtomicU32,
}

impl Edge {
    pub(crate) fn new() -> Self {
        Edge { successor: AtomicU32::new(0), next: AtomicU32::new(0) }
    }

    #[inline]
    pub(crate) fn set_next(&self, next: Option<u32>) {
        self.next.store(next.unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    #[inline]
    fn next(&self) -> Option<u32> {
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

    #[inline]
    pub(super) fn from_bits(bits: u32) -> Self {
        EdgeId(bits)
    }

    #[inline]
    pub(super) fn bits(self) -> u32 {
        self.0
    }

    #[inline]
    pub(super) fn edge(self) -> &'static Edge {
        &task::record(RecordId::new(self.0 >> 3)).edges[(self.0 & 7) as usize]
    }
}

/// An access by the record that carries it.
#[derive(Clone, Copy)]
pub struct AccessId {
    carrier: &'static Record,
    index: usize,
}

impl AccessId {
    #[inline]
    pub(crate) fn new(carrier: &'static Record, index: usize) -> Self {
        AccessId { carrier, index }
    }

    /// The generation of the record, which tells the access from earlier ones in its place.
    #[inline]
    pub(crate) fn generation(self) -> u32 {
        self.carrier.generation()
    }

    /// The place among the accesses of its task.
    #[inline]
    fn number(self, owner: &'static Record) -> usize {
        if std::ptr::eq(self.carrier, owner) {
            return self.index;
        }
        let is_this = |access: AccessId| std::ptr::eq(access.slot(), self.slot());
        task::Accesses::of(owner).position(is_this).unwrap_or(self.index)
    }

    /// The tasks that wait for the access, if it is open. For reports: they may be moving on.
    pub(crate) fn waiting(self) -> Vec<RecordId> {
        let edge = |bits| EdgeId::from_bits(bits).edge();
        let first = self.slot().head.first(self.generation()).map(edge);
        std::iter::successors(first, |&current| current.next().map(edge))
            .take(REPORTED)
            .map(|edge: &Edge| RecordId::new(edge.successor.load(Ordering::Relaxed)))
            .collect()
    }

    #[inline]
    pub(crate) fn slot(self) -> &'static AccessSlot {
        &self.carrier.accesses[self.index]
    }
}

/// Closes an access: its region is free, the tasks that waited for it may become ready, and its
/// own task may complete. Called exactly once for each access, when its guard drops.
#[inline]
pub(crate) fn release(access: AccessId) {
    if replay::close_here(access.carrier, access.index) {
        return;
    }
    let slot = access.slot();
    let owner = access.carrier.owner();
    let owning = task::record(owner);
    if owning.role() == Role::Replayed {
        return replay::close(owning, access.number(owning));
    }
    let failure = if slot.writes() { task::record(owner).failure() } else { None };
    if let Some(failure) = &failure {
        super::domain::poison(slot, failure);
    }
    if slot.mode() == Mode::Commutative {
        // While the access is open, which keeps the array.
        turns::give_up(slot);
    }
    let mut next = slot.head.close(access.generation());
    while let Some(bits) = next {
        let edge = EdgeId::from_bits(bits).edge();
        // Read first: once satisfied, the successor may run and its record be reused.
        next = edge.next();
        let successor = RecordId::new(edge.successor.load(Ordering::Relaxed));
        if let Some(failure) = &failure {
            task::record(successor).poison(failure);
        }
        task::satisfy(successor);
    }
    task::resolve_access(owner);
}
