//! Regions: parts of arrays that tasks declare.

use std::fmt;
use std::marker::PhantomData;

use ndarray::Ix1;

use super::{ArrayCore, ArrayLabel, Invariant, Rect};
use crate::error::Error;
use crate::record::AccessId;

/// A part of an [`Array`](crate::Array) (`D` = `Ix1`, contiguous) or of a
/// [`Matrix`](crate::Matrix) (`D` = `Ix2`, a rectangle).
///
/// Creating a region costs nothing and checks nothing; a region outside its array is an error of
/// the spawn that declares it.
pub struct Region<'a, T, D = Ix1> {
    core: &'a ArrayCore,
    rect: Rect,
    /// Number of the tile that is the whole region, if known.
    whole_tile: Option<u32>,
    /// Access that lends the region to children of its task.
    lender: Option<&'a AccessId>,
    marker: PhantomData<(Invariant<T>, D)>,
}

impl<'a, T, D> Region<'a, T, D> {
    #[inline]
    pub(crate) fn new(core: &'a ArrayCore, rect: Rect) -> Self {
        Region { core, rect, whole_tile: None, lender: None, marker: PhantomData }
    }

    /// Creates a region that is a tile in many arrays: tasks that declare a tile as such cost less.
    #[inline]
    pub(super) fn perhaps_tile(core: &'a ArrayCore, rect: Rect) -> Self {
        Region { whole_tile: core.tiles().exactly(&rect), ..Region::new(core, rect) }
    }

    /// Creates the region of tile `row`, `col`.
    #[inline]
    pub(super) fn tile(core: &'a ArrayCore, row: usize, col: usize) -> Self {
        let (rect, whole_tile) = core.tiles().at(row, col);
        Region { core, rect, whole_tile, lender: None, marker: PhantomData }
    }

    /// Creates a part of the region of `lender`.
    pub(crate) fn lent(core: &'a ArrayCore, rect: Rect, lender: &'a AccessId) -> Self {
        Region { core, rect, whole_tile: None, lender: Some(lender), marker: PhantomData }
    }

    /// Returns the rectangle in the array. A one-dimensional range is one row.
    pub fn rect(&self) -> Rect {
        self.rect
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.rect.rows() * self.rect.cols()
    }

    /// Returns `true` if the region has no element.
    pub fn is_empty(&self) -> bool {
        self.rect.is_empty()
    }

    /// Checks the region, as every spawn does.
    ///
    /// **Errors**: the region does not lie inside its array.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Error> {
        self.core.check(self.rect)
    }

    /// Returns the same part of the array for a task that only excludes others from it: its guard
    /// gives access to no element.
    #[inline]
    #[doc(hidden)]
    pub fn without_data(&self) -> Region<'a, ()> {
        let Region { core, rect, whole_tile, lender, .. } = *self;
        Region { core, rect, whole_tile, lender, marker: PhantomData }
    }

    /// Returns the region of all elements of both regions, if they are of one array and lie side by
    /// side in a rectangle.
    #[inline]
    #[doc(hidden)]
    pub fn joined(&self, other: &Region<'a, ()>) -> Option<Self> {
        let Region { core, rect, lender, .. } = *self;
        let joins = self.is_of_one_array(other) && other.check().is_ok();
        let rect = rect.joined(&other.rect).filter(|_| joins)?;
        Some(Region { core, rect, whole_tile: None, lender, marker: PhantomData })
    }

    /// Adds the elements of a region of the same array that begins where this one ends, in the same rows. Returns
    /// `false`, without any effect, if it is none.
    #[inline]
    #[doc(hidden)]
    pub fn extend_to(&mut self, other: &Region<'a, ()>) -> bool {
        let extends = self.rect.is_before(&other.rect)
            && self.is_of_one_array(other)
            && other.check().is_ok();
        if extends {
            self.rect.col_end = other.rect.col_end;
            self.whole_tile = None;
        }
        extends
    }

    /// Returns the region of the elements of another one, if both are of one array.
    #[inline]
    #[doc(hidden)]
    pub fn moved_to(&self, other: &Region<'a, ()>) -> Option<Self> {
        let Region { rect, whole_tile, .. } = *other;
        self.is_of_one_array(other).then_some(Region { rect, whole_tile, ..*self })
    }

    /// Returns `true` if another region is of the same array, and lent by the same task if it is.
    #[inline]
    fn is_of_one_array(&self, other: &Region<'a, ()>) -> bool {
        let lender = |lender: Option<&AccessId>| lender.map(std::ptr::from_ref);
        std::ptr::eq(self.core, other.core) && lender(self.lender) == lender(other.lender)
    }

    /// Returns the number that identifies the array in this process.
    #[doc(hidden)]
    pub fn array_id(&self) -> u64 {
        self.core.id()
    }

    /// Returns the name of the array in reports.
    pub fn array_label(&self) -> ArrayLabel {
        self.core.label()
    }

    #[inline]
    pub(crate) fn core(&self) -> &'a ArrayCore {
        self.core
    }

    #[inline]
    pub(crate) fn whole_tile(&self) -> Option<u32> {
        self.whole_tile
    }

    #[inline]
    pub(crate) fn lender(&self) -> Option<&'a AccessId> {
        self.lender
    }
}

impl<T, D> Clone for Region<'_, T, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, D> Copy for Region<'_, T, D> {}

impl<T, D> fmt::Debug for Region<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.core.label().part(self.rect))
    }
}
