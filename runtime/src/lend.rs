//! Lent regions, which a body leaves to its children.
#![allow(unsafe_code, reason = "gives up the access that is lent")]

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use ndarray::{Ix1, Ix2};

use crate::data::{ArrayLabel, Invariant, Rect, Region, bounds};
use crate::dependency::{self, OpenAccess};
use crate::guard::Guard;
use crate::record::{Role, record};
use crate::task;

/// A region that a task lends to its children and cannot touch itself.
///
/// A lending is made of a guard, with `lend`, or handed to the body of a task that has declared a
/// weak access. Regions for [`Children`](crate::Children) are cut from it, counted from its own
/// first element. When it drops, no more children can use it, and the parts that they do not have
/// open are free for the tasks after its own; the rest follows piece by piece.
///
/// A child that returns its guard gives the region back:
/// `children.task("back").inout(&lend.all()).run(|all| all)?.await?`.
pub struct Lend<T, D = Ix1> {
    open: Open,
    marker: PhantomData<(Invariant<T>, D)>,
}

/// The access that is lent.
struct Open(OpenAccess);

impl Drop for Open {
    fn drop(&mut self) {
        if task::is_unwinding() {
            let access = self.0;
            // SAFETY: this is dropped, once, and so the last to have the access.
            task::defer_release(move || unsafe { task::pass_on(access) });
        } else {
            // SAFETY: as above.
            unsafe { task::pass_on(self.0) };
        }
    }
}

impl<T, D> Lend<T, D> {
    /// Lends an access whose guard was forgotten.
    pub(crate) fn of_forgotten(access: OpenAccess) -> Self {
        dependency::lend(access);
        Lend { open: Open(access), marker: PhantomData }
    }

    /// Returns the whole region.
    pub fn all(&self) -> Region<'_, T, D> {
        self.part(self.rect())
    }

    /// Returns the rectangle in the array.
    pub fn rect(&self) -> Rect {
        self.open.0.slot().rect()
    }

    /// Returns the number that identifies the array in this process.
    #[doc(hidden)]
    pub fn array_id(&self) -> u64 {
        self.open.0.array().id()
    }

    /// Returns the name of the array in reports.
    pub fn array_label(&self) -> ArrayLabel {
        self.open.0.array().label()
    }

    fn part<E>(&self, rect: Rect) -> Region<'_, T, E> {
        Region::lent(self.open.0.array(), rect, &self.open.0)
    }
}

impl<T> Lend<T> {
    /// Returns the elements of `range`.
    pub fn region(&self, range: impl RangeBounds<usize>) -> Region<'_, T> {
        let whole = self.rect();
        let (col, col_end) = shift(bounds(&range, self.len()), whole.col);
        self.part(Rect { col, col_end, ..whole })
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.rect().cols()
    }

    /// Returns `true` if the region has no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Lend<T, Ix2> {
    /// Returns the rectangle `rows` x `cols`.
    pub fn region(
        &self,
        rows: impl RangeBounds<usize>,
        cols: impl RangeBounds<usize>,
    ) -> Region<'_, T, Ix2> {
        let whole = self.rect();
        let (row, row_end) = shift(bounds(&rows, self.rows()), whole.row);
        let (col, col_end) = shift(bounds(&cols, self.cols()), whole.col);
        self.part(Rect { row, row_end, col, col_end })
    }

    /// Returns the elements `cols` of row `row`: contiguous, so a one-dimensional region.
    pub fn row(&self, row: usize, cols: impl RangeBounds<usize>) -> Region<'_, T> {
        let rect = self.region(row..row.saturating_add(1), cols).rect();
        self.part(rect)
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rect().rows()
    }

    /// Returns the number of columns.
    pub fn cols(&self) -> usize {
        self.rect().cols()
    }
}

impl<T: Send + Sync + 'static, D: Send + 'static> Guard for Lend<T, D> {
    fn of_access(access: OpenAccess) -> Self {
        if record(access.task()).role() == Role::Replayed {
            // For all other weak accesses the spawn has made the lending.
            return Lend::of_forgotten(access);
        }
        Lend { open: Open(access), marker: PhantomData }
    }
}

impl<T, D> fmt::Debug for Lend<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lend of {}", self.array_label().part(self.rect()))
    }
}

/// Shifts a range by `first`. A range beyond `u32` is outside of any array, and is refused by the
/// spawn.
fn shift((start, end): (u32, u32), first: u32) -> (u32, u32) {
    (start.saturating_add(first), end.saturating_add(first))
}
