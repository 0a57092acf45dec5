//! Accesses as tasks declare them.

use std::sync::Arc;

use super::Arrays;
use crate::data::{ArrayCore, Mode, Rect, Region};
use crate::error::Error;
use crate::record::{AccessId, AccessSlot, GroupHead, Label, RecordId};

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

    /// Returns `true` if the array is one of `own`.
    #[inline]
    pub(crate) fn is_among(&self, own: &Arrays) -> bool {
        std::ptr::eq(Arc::as_ptr(self.core.arrays()), own)
    }

    /// Checks that the array belongs to the runtime of `own`, the arrays of the task's `group`.
    pub(crate) fn check_runtime(
        &self,
        own: &Arrays,
        group: &GroupHead,
        label: Label,
    ) -> Result<(), Error> {
        if self.core.arrays().is_of_runtime_of(own) {
            return Ok(());
        }
        let (label, group, array) = (label.text(), group.name().to_owned(), self.core.label());
        Err(Error::OtherRuntime { label, group, array })
    }

    /// Fills the slot of the access, of a record in its `generation`.
    #[inline]
    pub(crate) fn fill(&self, slot: &AccessSlot, generation: u32) {
        let array = std::ptr::from_ref(self.core).cast();
        slot.fill(generation, array, &self.rect, self.mode, self.weak);
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
