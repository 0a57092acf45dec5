//! Two-dimensional arrays, stored row by row.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

use ndarray::Ix2;

use super::owner::Owner;
use super::{ArrayLabel, Invariant, Rect, Region, Tiling, bounds};
use crate::error::Error;
use crate::group::Group;

/// A shared matrix of `rows` x `cols`, divided into tiles.
///
/// Clones are handles of the same matrix.
pub struct Matrix<T> {
    owner: Arc<Owner>,
    marker: Invariant<T>,
}

impl<T: Send + Sync + 'static> Matrix<T> {
    /// Makes a matrix with `cols` columns of `values`, row after row. Pages are those of
    /// [`Array::new`](crate::Array::new).
    ///
    /// **Errors**: a number of values that is no multiple of `cols`; an empty tile; more than
    /// 2^32 - 2 rows or columns.
    pub fn new(group: &Group, values: Vec<T>, cols: usize, tiling: Tiling) -> Result<Self, Error> {
        let rows = values.len().checked_div(cols).unwrap_or(0);
        if rows * cols != values.len() {
            let what = "number of values of a matrix";
            return Err(Error::Size { what, value: values.len(), limit: rows * cols });
        }
        let owner = Owner::new(group.inner(), values, rows, cols, tiling)?;
        Ok(Matrix { owner: Arc::new(owner), marker: PhantomData })
    }
}

impl<T> Matrix<T> {
    /// Returns the rectangle `rows` x `cols`.
    #[inline]
    pub fn region(
        &self,
        rows: impl RangeBounds<usize>,
        cols: impl RangeBounds<usize>,
    ) -> Region<'_, T, Ix2> {
        Region::new(self.owner.core(), self.rect(&rows, &cols))
    }

    /// Returns the elements `cols` of row `row`: contiguous, so a one-dimensional region.
    #[inline]
    pub fn row(&self, row: usize, cols: impl RangeBounds<usize>) -> Region<'_, T> {
        let (core, rect) = (self.owner.core(), self.rect(&(row..row.saturating_add(1)), &cols));
        match rect.cols() == self.cols() {
            true => Region::perhaps_tile(core, rect),
            false => Region::new(core, rect),
        }
    }

    /// Returns the region of the whole matrix.
    #[inline]
    pub fn all(&self) -> Region<'_, T, Ix2> {
        let core = self.owner.core();
        Region::perhaps_tile(core, core.extent())
    }

    /// Returns tile `row`, `col`.
    #[inline]
    pub fn tile(&self, row: usize, col: usize) -> Region<'_, T, Ix2> {
        Region::tile(self.owner.core(), row, col)
    }

    /// Returns the numbers of rows and of columns of tiles.
    pub fn tiles(&self) -> (usize, usize) {
        self.owner.core().tiles().counts()
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.owner.core().extent().rows()
    }

    /// Returns the number of columns.
    pub fn cols(&self) -> usize {
        self.owner.core().extent().cols()
    }

    /// Returns a pointer to the first element. It may be used for elements of which the caller has
    /// a guard, or an equivalent right.
    #[doc(hidden)]
    pub fn as_mut_ptr(&self) -> *mut T {
        self.owner.core().data()
    }

    /// Gives the matrix a name, which reports show beside its number. The first name stays.
    pub fn named(self, name: impl Into<Arc<str>>) -> Self {
        self.owner.core().set_name(name.into());
        self
    }

    /// Returns the name of the matrix in reports.
    pub fn label(&self) -> ArrayLabel {
        self.owner.core().label()
    }

    /// Returns the number that identifies the matrix in this process.
    pub fn id(&self) -> u64 {
        self.owner.core().id()
    }

    fn rect(&self, rows: &impl RangeBounds<usize>, cols: &impl RangeBounds<usize>) -> Rect {
        let (row, row_end) = bounds(rows, self.rows());
        let (col, col_end) = bounds(cols, self.cols());
        Rect::new(row, row_end, col, col_end)
    }
}

impl<T> Clone for Matrix<T> {
    fn clone(&self) -> Self {
        Matrix { owner: Arc::clone(&self.owner), marker: PhantomData }
    }
}

impl<T> fmt::Debug for Matrix<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.label())
    }
}
