//! Remote regions: parts of a slot in the memory of a rank.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use talpf_runtime::Rect;

use super::part::Part;
use super::{MemorySlot, Slot};
use crate::numbers::Rank;

/// Part of the memory of a rank that a put writes, or a get reads: a rectangle of the matrix that
/// the rank has registered, or consecutive elements. Made by the methods of [`MemorySlot`], at no
/// cost and without a check: a region that does not exist is an error of its operation.
///
/// Elements pass in the order of rows, and of columns in a row, as the local region has them. The
/// two may differ in their strides, and in their shapes as long as they have as many elements.
///
/// **Cost**: consecutive elements are one request as far as the device carries them; those of a
/// rectangle narrower than its matrix are a request for each of its rows.
pub struct RemoteRegion<'s, T> {
    pub(crate) slot: &'s Arc<Slot>,
    pub(crate) rank: Rank,
    pub(crate) part: Part,
    marker: PhantomData<fn(T) -> T>,
}

impl<T> MemorySlot<T> {
    /// Returns the remote region that begins at element `index` of the slot at `rank`, and is as
    /// long as the local region. Elements of a matrix are counted row after row, as the matrix is
    /// stored there.
    #[inline]
    pub fn at(&self, rank: impl Into<Rank>, index: usize) -> RemoteRegion<'_, T> {
        self.part(rank.into(), Part::From(index as u64))
    }

    /// Returns the remote region that is a part of the slot at `rank`.
    #[inline]
    pub(crate) fn part(&self, rank: Rank, part: Part) -> RemoteRegion<'_, T> {
        RemoteRegion { slot: &self.slot, rank, part, marker: PhantomData }
    }

    /// Returns the elements `cols` of row `row` of the matrix that `rank` has registered, as
    /// [`Matrix::row`](talpf_runtime::Matrix::row) does of a local one. An array is one row.
    #[inline]
    pub fn row(
        &self,
        rank: impl Into<Rank>,
        row: usize,
        cols: impl RangeBounds<usize>,
    ) -> RemoteRegion<'_, T> {
        self.region(rank, row..row.saturating_add(1), cols)
    }

    /// Returns the rectangle `rows x cols` of the matrix that `rank` has registered, as
    /// [`Matrix::region`](talpf_runtime::Matrix::region) does of a local one. Ranges without an end
    /// reach as far as the matrix *of that rank*, which may have another shape than the one here.
    ///
    /// ```
    /// use talpf::{Config, Error, Rank, SyncMode, exec};
    /// use talpf_runtime::{Matrix, Tiling};
    ///
    /// // Rank 0 puts the first column of its matrix into the last one of a wider matrix.
    /// let sums = exec(Config { ranks: 2, ..Config::default() }, async |ctx| {
    ///     let cols = 3 + 2 * ctx.rank().0 as usize;
    ///     let values = vec![f64::from(1 - ctx.rank().0); 4 * cols];
    ///     let matrix = Matrix::new(ctx.group(), values, cols, Tiling::new(4, 1))?;
    ///     let slot = ctx.register_global(&matrix).await?;
    ///     let mut sync = ctx.sync(SyncMode::DEFAULT);
    ///     if ctx.rank() == Rank(0) {
    ///         ctx.put(&matrix.region(.., ..1), slot.region(Rank(1), .., 4..))?;
    ///     } else {
    ///         sync = sync.window(&matrix.region(.., 4..));
    ///     }
    ///     sync.await?;
    ///     let read = ctx.group().task("sum").input(&matrix.region(.., cols - 1..));
    ///     Ok::<_, Error>(read.run(|last| last.view().sum())?.await?)
    /// })?;
    /// assert_eq!(sums, [4.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[inline]
    pub fn region(
        &self,
        rank: impl Into<Rank>,
        rows: impl RangeBounds<usize>,
        cols: impl RangeBounds<usize>,
    ) -> RemoteRegion<'_, T> {
        let rank = rank.into();
        // Of a rank without the slot, every operation is refused.
        let (height, width) = self.slot.shape_at(rank).unwrap_or_default();
        let (row, row_end) = bounds(&rows, height);
        let (col, col_end) = bounds(&cols, width);
        let part = Part::Rectangle(Rect { row, row_end, col, col_end });
        RemoteRegion { slot: &self.slot, rank, part, marker: PhantomData }
    }
}

/// Returns the first and the last number of a range, which ends at `end` if it has no end itself.
/// Numbers too large for a matrix are the largest, beyond every one.
fn bounds(range: &impl RangeBounds<usize>, end: u64) -> (u32, u32) {
    let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let first = match range.start_bound() {
        Bound::Included(&first) => first as u64,
        Bound::Excluded(&before) => (before as u64).saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => (last as u64).saturating_add(1),
        Bound::Excluded(&end) => end as u64,
        Bound::Unbounded => end,
    };
    (narrow(first), narrow(end))
}

impl<T> Clone for RemoteRegion<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for RemoteRegion<'_, T> {}

impl<T> fmt::Debug for RemoteRegion<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            Part::From(index) => write!(f, "element {index}")?,
            Part::Rectangle(Rect { row, row_end, col, col_end }) => {
                write!(f, "rows {row}..{row_end}, columns {col}..{col_end}")?;
            }
        }
        write!(f, " of slot {} at {}", self.slot.number, self.rank)
    }
}

/// A remote region that a task keeps.
pub(crate) struct KeptRemote<T> {
    slot: MemorySlot<T>,
    rank: Rank,
    part: Part,
}

impl<T> KeptRemote<T> {
    pub(crate) fn new(region: &RemoteRegion<'_, T>) -> Self {
        let RemoteRegion { slot, rank, part, .. } = *region;
        KeptRemote { slot: MemorySlot::new(Arc::clone(slot)), rank, part }
    }

    #[inline]
    pub(crate) fn region(&self) -> RemoteRegion<'_, T> {
        let KeptRemote { slot, rank, part } = self;
        RemoteRegion { slot: &slot.slot, rank: *rank, part: *part, marker: PhantomData }
    }
}
