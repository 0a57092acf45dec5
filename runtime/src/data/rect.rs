//! A rectangle of rows and columns, half open on both axes.

use std::fmt;
use std::ops::{Bound, RangeBounds};

/// The rectangle `row..row_end` x `col..col_end`. A one-dimensional range has one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rect {
    /// First row.
    pub row: u32,
    /// The row after the last one.
    pub row_end: u32,
    /// First column.
    pub col: u32,
    /// The column after the last one.
    pub col_end: u32,
}

impl Rect {
    pub(crate) const fn new(row: u32, row_end: u32, col: u32, col_end: u32) -> Self {
        Rect { row, row_end, col, col_end }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.row_end.saturating_sub(self.row) as usize
    }

    /// Returns the number of columns.
    pub fn cols(&self) -> usize {
        self.col_end.saturating_sub(self.col) as usize
    }

    /// Returns `true` if the rectangle has no element.
    #[inline]
    pub fn is_empty(&self) -> bool {
        (self.row >= self.row_end) | (self.col >= self.col_end)
    }

    /// Returns `true` if some element lies in both rectangles.
    #[inline]
    pub fn overlaps(&self, other: &Rect) -> bool {
        (self.row < other.row_end)
            & (other.row < self.row_end)
            & (self.col < other.col_end)
            & (other.col < self.col_end)
    }

    /// Returns `true` if every element of `other` lies in this rectangle.
    #[inline]
    pub fn covers(&self, other: &Rect) -> bool {
        (self.row <= other.row)
            & (other.row_end <= self.row_end)
            & (self.col <= other.col)
            & (other.col_end <= self.col_end)
    }

    /// Returns the least rectangle that covers both.
    #[inline]
    pub(crate) fn around(&self, other: &Rect) -> Rect {
        Rect {
            row: self.row.min(other.row),
            row_end: self.row_end.max(other.row_end),
            col: self.col.min(other.col),
            col_end: self.col_end.max(other.col_end),
        }
    }

    /// Returns `true` if `other` begins where this rectangle ends, in the same rows.
    #[inline]
    pub(crate) fn is_before(&self, other: &Rect) -> bool {
        let ends = (self.row, self.row_end, self.col_end);
        ends == (other.row, other.row_end, other.col)
    }

    /// Returns the rectangle of the elements of both, if they form one.
    pub(crate) fn joined(&self, other: &Rect) -> Option<Rect> {
        let elements = |rect: &Rect| rect.rows() as u128 * rect.cols() as u128;
        let (around, shared) = (self.around(other), self.intersection(other));
        (elements(&around) + elements(&shared) == elements(self) + elements(other))
            .then_some(around)
    }

    #[inline]
    pub(crate) fn intersection(&self, other: &Rect) -> Rect {
        Rect {
            row: self.row.max(other.row),
            row_end: self.row_end.min(other.row_end),
            col: self.col.max(other.col),
            col_end: self.col_end.min(other.col_end),
        }
    }
}

impl fmt::Display for Rect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if (self.row, self.row_end) == (0, 1) {
            write!(f, "[{}..{}]", self.col, self.col_end)
        } else {
            write!(f, "[{}..{}, {}..{}]", self.row, self.row_end, self.col, self.col_end)
        }
    }
}

/// Returns the bounds of a range, with everything beyond `u32` moved outside any array.
#[inline]
pub(crate) fn bounds(range: &impl RangeBounds<usize>, len: usize) -> (u32, u32) {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len,
    };
    let narrow = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    (narrow(start), narrow(end))
}
