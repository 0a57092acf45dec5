//! An access in the record of its task: its state and its region.
//!
//! The array is an address here, by which accesses of different arrays differ. Whoever has an open
//! access follows it (`OpenAccess`).

use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use talpf_primitives::AtomicU32;

use super::AccessHead;
use crate::data::{Mode, Rect};

/// Mode and weakness are kept in the lowest bits of the array's address.
const TAG_BITS: usize = 15;
const WEAK: usize = 1;
/// Alignment that the address of an array has.
pub(crate) const ARRAY_ALIGN: usize = TAG_BITS + 1;

/// An access: its state and its region.
///
/// Array and rectangle are written while the record is unshared and read by the task's body; the
/// atomics are there for the hang report, which may read a record that is being reused.
pub(crate) struct AccessSlot {
    pub(crate) head: AccessHead,
    array: AtomicPtr<()>,
    rows: [AtomicU32; 2],
    cols: [AtomicU32; 2],
}

impl AccessSlot {
    pub(crate) fn new() -> Self {
        AccessSlot {
            head: AccessHead::new(),
            array: AtomicPtr::default(),
            rows: [AtomicU32::new(0), AtomicU32::new(0)],
            cols: [AtomicU32::new(0), AtomicU32::new(0)],
        }
    }

    #[inline]
    pub(crate) fn fill(
        &self,
        generation: u32,
        array: *const (),
        rect: &Rect,
        mode: Mode,
        is_weak: bool,
    ) {
        self.head.open(generation);
        let tag = (mode as usize) << 1 | usize::from(is_weak);
        let tagged = array.cast_mut().map_addr(|address| address | tag);
        self.array.store(tagged, Relaxed);
        self.rows[0].store(rect.row, Relaxed);
        self.rows[1].store(rect.row_end, Relaxed);
        self.cols[0].store(rect.col, Relaxed);
        self.cols[1].store(rect.col_end, Relaxed);
    }

    /// Returns the address of the array, which lives while the access is open.
    #[inline]
    pub(crate) fn array(&self) -> *const () {
        self.array.load(Relaxed).map_addr(|address| address & !TAG_BITS).cast_const()
    }

    #[inline]
    fn tag(&self) -> usize {
        self.array.load(Relaxed).addr() & TAG_BITS
    }

    #[inline]
    pub(crate) fn writes(&self) -> bool {
        self.tag() > WEAK
    }

    /// Returns `true` if the task only lends the region.
    #[inline]
    pub(crate) fn is_weak(&self) -> bool {
        self.tag() & WEAK != 0
    }

    /// Returns `true` if two accesses exclude each other.
    #[inline]
    pub(crate) fn conflicts(&self, other: &AccessSlot) -> bool {
        if self.array() != other.array() || !self.mode().excludes(other.mode()) {
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
            self.rows[0].load(Relaxed),
            self.rows[1].load(Relaxed),
            self.cols[0].load(Relaxed),
            self.cols[1].load(Relaxed),
        )
    }
}
