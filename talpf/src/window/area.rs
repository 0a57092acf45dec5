//! The areas of windows, and the claims of operations.

use std::ops::Range;

use talpf_runtime::Rect;

use crate::numbers::{Elements, Rank};

/// The kind of access that a window admits or an operation makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Get.
    Read,
    /// Fetch-and-add, compare-and-swap. Windows that are written to let them land.
    Update,
    /// Put.
    Write,
}

impl Kind {
    #[inline]
    pub(super) fn changes(self) -> bool {
        self != Kind::Read
    }

    /// Returns the verb of an operation of this kind.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Kind::Read => "gets",
            Kind::Update => "updates",
            Kind::Write => "puts",
        }
    }
}

/// A rectangle of a slot whose rows have `cols` elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    pub(crate) slot: u32,
    pub(crate) rect: Rect,
    pub(crate) cols: u64,
    pub(crate) kind: Kind,
}

/// Elements of a slot that an operation accesses: `index..end`, or those of a rectangle, of which
/// the first is `index` and the last is before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) source: Rank,
    pub(crate) slot: u32,
    pub(crate) index: u64,
    pub(crate) end: u64,
    /// Number of rows of a rectangle; 1 if all elements are consecutive.
    pub(crate) rows: u32,
    /// Elements from one row of a rectangle to the next.
    pub(crate) stride: u32,
    pub(crate) kind: Kind,
    /// `true` if a remote rank requests only a note: the slot has no windows.
    pub(crate) raw: bool,
}

impl Area {
    /// Returns `true` if both have an element in common, and one of them is written to.
    pub(crate) fn conflicts(&self, other: &Area) -> bool {
        self.slot == other.slot
            && (self.kind.changes() || other.kind.changes())
            && !(self.rect.is_empty() || other.rect.is_empty())
            && self.rect.overlaps(&other.rect)
    }

    /// Returns `true` if all elements of the claim lie inside.
    #[inline]
    pub(crate) fn covers(&self, claim: &Claim) -> bool {
        if self.slot != claim.slot || self.kind.changes() != claim.kind.changes() {
            return false;
        }
        if !claim.is_consecutive() {
            return self.covers_rectangle(claim);
        }
        let (row, row_end) = (u64::from(self.rect.row), u64::from(self.rect.row_end));
        let (col, col_end) = (u64::from(self.rect.col), u64::from(self.rect.col_end));
        if claim.index >= claim.end {
            return true;
        }
        if row == 0 && row_end == 1 {
            return col <= claim.index && claim.end <= col_end;
        }
        if self.cols == 0 {
            return false;
        }
        let (first, last) = (claim.index / self.cols, (claim.end - 1) / self.cols);
        let rows_inside = row <= first && last < row_end;
        if first == last {
            let (start, end) = (claim.index % self.cols, (claim.end - 1) % self.cols + 1);
            rows_inside && col <= start && end <= col_end
        } else {
            rows_inside && col == 0 && col_end == self.cols
        }
    }

    /// Returns the elements from the first to the last one, and those between that are not inside.
    pub(super) fn elements(&self) -> Range<u64> {
        let Rect { row, row_end, col, col_end } = self.rect;
        let element = |row: u32, col: u32| u64::from(row) * self.cols + u64::from(col);
        if self.rect.is_empty() { 0..0 } else { element(row, col)..element(row_end - 1, col_end) }
    }

    /// Returns the elements, if no other ones lie between them.
    #[inline]
    pub(super) fn consecutive(&self) -> Option<Range<u64>> {
        let Rect { row, row_end, col, col_end } = self.rect;
        let element = |row: u32, col: u32| u64::from(row) * self.cols + u64::from(col);
        if u64::from(col_end) == self.cols && col == 0 {
            Some(element(row, 0)..element(row_end, 0))
        } else {
            (row_end == row + 1).then(|| element(row, col)..element(row, col_end))
        }
    }

    fn covers_rectangle(&self, claim: &Claim) -> bool {
        claim.rectangle(self.cols).is_some_and(|(rows, cols)| {
            u64::from(self.rect.row) <= rows.start
                && rows.end <= u64::from(self.rect.row_end)
                && u64::from(self.rect.col) <= cols.start
                && cols.end <= u64::from(self.rect.col_end)
        })
    }
}

impl Claim {
    /// Returns `true` if no element lies between those of the claim.
    #[inline]
    pub(crate) fn is_consecutive(&self) -> bool {
        self.rows == 1
    }

    /// Returns the number of elements in each row.
    fn width(&self) -> Option<u64> {
        let before_last = u64::from(self.rows).checked_sub(1)? * u64::from(self.stride);
        self.end.checked_sub(self.index)?.checked_sub(before_last)
    }

    /// Returns the rows and columns of a rectangle in a slot with `cols` columns. `None` if the
    /// claim, which a peer may have sent, is no rectangle of it.
    pub(super) fn rectangle(&self, cols: u64) -> Option<(Range<u64>, Range<u64>)> {
        let (width, col) = (self.width()?, self.index.checked_rem(cols)?);
        let fits = u64::from(self.stride) == cols && 0 < width && col + width <= cols;
        let row = self.index / cols;
        fits.then(|| (row..row + u64::from(self.rows), col..col + width))
    }

    /// Iterates over the claims of each row; none if the claim is no rectangle.
    pub(super) fn each_row(self) -> impl Iterator<Item = Claim> {
        let (rows, width) = self.width().map_or((0, 0), |width| (self.rows, width));
        (0..u64::from(rows)).map(move |row| {
            let index = self.index + row * u64::from(self.stride);
            Claim { index, end: index + width, rows: 1, ..self }
        })
    }

    /// Returns the elements, for reports.
    pub(crate) fn elements(&self) -> Elements {
        let stride = u64::from(self.stride);
        match self.rectangle(stride).filter(|_| !self.is_consecutive()) {
            Some((rows, cols)) => Elements::Rectangle { rows, cols },
            None => Elements::Consecutive(self.index..self.end),
        }
    }

    /// Returns `true` if both touch an element and at least one changes it. A rectangle counts as
    /// all elements from its first to its last one.
    #[inline]
    pub(crate) fn conflicts(&self, other: &Claim) -> bool {
        self.slot == other.slot
            && (self.kind.changes() || other.kind.changes())
            && self.index < other.end
            && other.index < self.end
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with the set of elements, one by one.
        #[test]
        fn covers_means_every_element(
            cols in 0u64..6, rows in 0u64..5,
            row in 0u32..4, height in 0u32..4, col in 0u32..5, width in 0u32..5,
            index in 0u64..20, len in 0u64..12, pieces in 1u32..4,
        ) {
            let (row_end, col_end) = ((row + height).min(rows as u32), (col + width).min(cols as u32));
            let rect = Rect { row, row_end, col, col_end };
            let area = Area { slot: 1, rect, cols, kind: Kind::Write };
            let (stride, kind) = (cols as u32, Kind::Write);
            // Rectangles are of the slot.
            let is_rectangle = pieces > 1 && len > 0 && cols > 0 && index % cols + len <= cols;
            let pieces = if is_rectangle { pieces } else { 1 };
            let end = index + u64::from(pieces - 1) * cols + len;
            let claim = Claim {
                source: Rank(0), slot: 1, index, end, rows: pieces, stride, kind, raw: false,
            };
            let inside = |element: u64| {
                let row = element.checked_div(cols).map(|r| (r as u32, (element % cols) as u32));
                let Some((r, c)) = row else { return false };
                rect.row <= r && r < rect.row_end && rect.col <= c && c < rect.col_end
            };
            let mut elements = claim.each_row().flat_map(|row| row.index..row.end);
            let covers = area.covers(&claim);
            prop_assert_eq!(covers, elements.all(inside));
            if let Some(consecutive) = area.consecutive().filter(|_| pieces == 1 && len > 0) {
                let ends_inside = consecutive.start <= index && end <= consecutive.end;
                prop_assert_eq!(covers, ends_inside, "{:?}", consecutive);
            }
        }
    }
}
