//! Arrays of one dimension.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

use super::owner::Owner;
use super::{ArrayLabel, Invariant, Rect, Region, Tiling, bounds};
use crate::error::Error;
use crate::group::Group;

/// A shared array, divided into tiles of equal length (the last may be shorter).
///
/// Clones are handles of the same array. The runtime finds dependencies by tile: regions may be cut
/// anywhere, and are cheapest when they are whole tiles.
pub struct Array<T> {
    owner: Arc<Owner>,
    marker: Invariant<T>,
}

impl<T: Send + Sync + 'static> Array<T> {
    /// Makes an array of `values` with `tile` elements a tile. Of values of 4 MiB and more, pages that nobody
    /// has touched yet become huge pages, where the kernel has them.
    ///
    /// **Errors**: a tile of 0 elements; more than 2^32 - 2 elements.
    pub fn new(group: &Group, values: Vec<T>, tile: usize) -> Result<Self, Error> {
        let cols = values.len();
        let owner = Owner::new(group.inner(), values, 1, cols, Tiling::new(1, tile))?;
        Ok(Array { owner: Arc::new(owner), marker: PhantomData })
    }
}

impl<T> Array<T> {
    /// Returns the elements of `range`.
    #[inline]
    pub fn region(&self, range: impl RangeBounds<usize>) -> Region<'_, T> {
        let (start, end) = bounds(&range, self.len());
        Region::new(self.owner.core(), Rect::new(0, 1, start, end))
    }

    /// Returns the region of all elements.
    #[inline]
    pub fn all(&self) -> Region<'_, T> {
        let core = self.owner.core();
        Region::perhaps_tile(core, core.extent())
    }

    /// Returns tile number `index`.
    #[inline]
    pub fn tile(&self, index: usize) -> Region<'_, T> {
        Region::tile(self.owner.core(), 0, index)
    }

    /// Returns the number of tiles.
    pub fn tiles(&self) -> usize {
        self.owner.core().tiles().counts().1
    }

    /// Returns the number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.owner.core().extent().cols()
    }

    /// Returns `true` if the array has no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a pointer to the first element. It may be used for elements of which the caller has
    /// a guard, or an equivalent right.
    #[doc(hidden)]
    pub fn as_mut_ptr(&self) -> *mut T {
        self.owner.core().data()
    }

    /// Gives the array a name, which reports show beside its number. The first name stays.
    pub fn named(self, name: impl Into<Arc<str>>) -> Self {
        self.owner.core().set_name(name.into());
        self
    }

    /// Returns the name of the array in reports.
    pub fn label(&self) -> ArrayLabel {
        self.owner.core().label()
    }

    /// Returns the number that identifies the array in this process.
    pub fn id(&self) -> u64 {
        self.owner.core().id()
    }
}

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        Array { owner: Arc::clone(&self.owner), marker: PhantomData }
    }
}

impl<T> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} tiles", self.label(), self.tiles())
    }
}
