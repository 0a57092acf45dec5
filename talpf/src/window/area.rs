//! The areas of windows, and the claims of operations.

use talpf_runtime::Rect;

use crate::numbers::Rank;

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

/// Consecutive elements `index..end` of a slot that an operation accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) source: Rank,
    pub(crate) slot: u32,
    pub(crate) index: u64,
    pub(crate) end: u64,
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
}

impl Claim {
    /// Returns `true` if both touch an element and at least one changes it.
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
            index in 0u64..20, len in 0u64..12,
        ) {
            let (row_end, col_end) = ((row + height).min(rows as u32), (col + width).min(cols as u32));
            let rect = Rect { row, row_end, col, col_end };
            let area = Area { slot: 1, rect, cols, kind: Kind::Write };
            let claim = Claim { source: Rank(0), slot: 1, index, end: index + len, kind: Kind::Write, raw: false };
            let inside = |element: u64| {
                let row = element.checked_div(cols).map(|r| (r as u32, (element % cols) as u32));
                let Some((r, c)) = row else { return false };
                rect.row <= r && r < rect.row_end && rect.col <= c && c < rect.col_end
            };
            prop_assert_eq!(area.covers(&claim), (index..index + len).all(inside));
        }
    }
}
