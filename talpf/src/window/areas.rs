//! The areas of the windows of one sync: the search for the window that covers an operation, and
//! for two that overlap.
//!
//! A few areas are compared one by one. More are sorted: those with the same rows of the same slot
//! are a *band*, in the order of their columns, and bands are in the order of their rows. A search
//! goes from the last band that begins early enough to those before it, as long as one of them
//! reaches far enough, and in each finds by bisection the window that reaches furthest.
//!
//! **Cost**: a search takes the logarithm of the number of windows for each band that has the row;
//! in an array, and in a matrix whose windows are tiles, that is one. An index takes a sort; bands
//! that share rows are compared with each other.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::area::{Area, Claim};

/// The areas of the windows of a sync, by number.
#[derive(Clone, Default)]
pub(crate) struct Areas {
    each: SmallVec<[Area; 2]>,
    index: Option<Arc<Index>>,
}

/// Largest number of windows that are compared one by one.
pub(super) const FEW: usize = 8;

impl Areas {
    /// Makes room for the areas of so many windows.
    #[inline]
    pub(crate) fn with_capacity(windows: usize) -> Self {
        Areas { each: SmallVec::with_capacity(windows), index: None }
    }

    /// Adds the area of the next window. [`Areas::sort`] follows the last one.
    #[inline]
    pub(crate) fn push(&mut self, area: Area) {
        self.each.push(area);
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[Area] {
        &self.each
    }

    /// Returns `true` if there are more than [`FEW`], which are found once all are declared.
    #[inline]
    pub(crate) fn are_many(&self) -> bool {
        self.each.len() > FEW
    }

    /// Sorts the areas for searches.
    ///
    /// **Errors**: two are in conflict; the error is the number of one of them.
    #[inline]
    pub(crate) fn sort(&mut self) -> Result<(), usize> {
        let each = &self.each;
        let conflict = if !self.are_many() {
            let conflicts = |at: &usize| each[..*at].iter().any(|area| area.conflicts(&each[*at]));
            (1..each.len()).find(conflicts)
        } else {
            self.index.insert(Arc::new(Index::new(each))).conflict()
        };
        conflict.map_or(Ok(()), Err)
    }

    /// Takes the index of more than [`FEW`] areas.
    #[inline]
    pub(super) fn take_index(&mut self) -> Option<Arc<Index>> {
        self.index.take()
    }
}

/// The number of a slot, and `true` if it is written to.
type SlotAccess = (u32, bool);

/// More than [`FEW`] areas, sorted.
pub(super) struct Index {
    /// Windows that are not empty, by band and first column.
    entries: Vec<Entry>,
    /// Bands, by slot, access and rows.
    bands: Vec<Band>,
}

struct Entry {
    cols: Range<u32>,
    number: u32,
    /// Largest end of the windows of the band up to this one, and the number of one that ends
    /// there.
    furthest: (u32, u32),
}

/// Windows with the same rows.
struct Band {
    access: SlotAccess,
    rows: Range<u32>,
    /// Largest end of rows of the bands of this access up to this one.
    furthest: u32,
    /// Elements from one row of the slot to the next.
    cols: u64,
    entries: Range<usize>,
}

impl Index {
    fn new(areas: &[Area]) -> Self {
        let filled = (0u32..).zip(areas).filter(|(_, area)| !area.rect.is_empty());
        let mut sorted: Vec<(u32, &Area)> = Vec::with_capacity(areas.len());
        sorted.extend(filled);
        let band = |area: &Area| {
            let access: SlotAccess = (area.slot, area.kind.changes());
            (access, area.rect.row, area.rect.row_end)
        };
        sorted.sort_unstable_by_key(|(number, area)| (band(area), area.rect.col, *number));
        let mut index = Index { entries: Vec::with_capacity(sorted.len()), bands: Vec::new() };
        for with_same_rows in sorted.chunk_by(|one, other| band(one.1) == band(other.1)) {
            let of_band = with_same_rows[0].1;
            let (access, row, row_end) = band(of_band);
            let first = index.entries.len();
            let mut furthest = (0, 0);
            for &(number, Area { rect, .. }) in with_same_rows {
                furthest = furthest.max((rect.col_end, number));
                index.entries.push(Entry { cols: rect.col..rect.col_end, number, furthest });
            }
            let before = index.bands.last().filter(|before| before.access == access);
            let furthest = before.map_or(row_end, |before| before.furthest.max(row_end));
            let (rows, entries) = (row..row_end, first..index.entries.len());
            index.bands.push(Band { access, rows, furthest, cols: of_band.cols, entries });
        }
        index
    }

    fn entries(&self, band: &Band) -> &[Entry] {
        &self.entries[band.entries.clone()]
    }

    /// Iterates over the bands of an access that begin at `row` or before, back to the first one
    /// that may end after row `last`.
    fn bands(&self, access: SlotAccess, row: u64, last: u64) -> impl Iterator<Item = &Band> {
        let begins = |band: &Band| (band.access, u64::from(band.rows.start)) <= (access, row);
        let before = self.bands[..self.bands.partition_point(begins)].iter().rev();
        before.take_while(move |band| band.access == access && u64::from(band.furthest) > last)
    }

    /// Returns the largest end of the windows of a band that begin at `col` or before, and the
    /// number of one that ends there.
    fn furthest(&self, band: &Band, col: u64) -> Option<(u32, u32)> {
        let entries = self.entries(band);
        let after = entries.partition_point(|entry| u64::from(entry.cols.start) <= col);
        entries[..after].last().map(|entry| entry.furthest)
    }

    /// Returns the number of a window that covers a claim which is not empty.
    pub(super) fn covering(&self, claim: &Claim) -> Option<usize> {
        let access = (claim.slot, claim.kind.changes());
        let first = self.bands.partition_point(|band| band.access < access);
        let cols = self.bands.get(first).filter(|band| band.access == access)?.cols;
        let (row, last, columns) = if !claim.is_consecutive() {
            let (rows, columns) = claim.rectangle(cols)?;
            (rows.start, rows.end - 1, columns)
        } else if claim.end <= cols {
            (0, 0, claim.index..claim.end)
        } else {
            let (row, last) = (claim.index / cols, (claim.end - 1) / cols);
            let in_row = claim.index % cols..(claim.end - 1) % cols + 1;
            (row, last, if row == last { in_row } else { 0..cols })
        };
        let mut bands = self.bands(access, row, last).filter(|b| u64::from(b.rows.end) > last);
        bands.find_map(|band| {
            let (end, number) = self.furthest(band, columns.start)?;
            (u64::from(end) >= columns.end).then_some(number as usize)
        })
    }

    /// Returns the number of a window that is in conflict with another one.
    fn conflict(&self) -> Option<usize> {
        let conflict = self.bands.iter().find_map(|band| {
            let inside = || self.conflict_inside(band);
            inside().or_else(|| self.others(band).find_map(|other| self.conflict_of(band, other)))
        });
        conflict.map(|number| number as usize)
    }

    fn conflict_inside(&self, band: &Band) -> Option<u32> {
        let mut pairs = self.entries(band).windows(2).filter(|_| band.access.1);
        pairs.find(|pair| pair[1].cols.start < pair[0].furthest.0).map(|pair| pair[1].number)
    }

    /// Iterates over the other bands of the slot that are written to and share rows with a band.
    fn others<'i>(&'i self, band: &'i Band) -> impl Iterator<Item = &'i Band> {
        let (slot, rows) = (band.access.0, &band.rows);
        let sharing = self.bands((slot, true), u64::from(rows.end - 1), u64::from(rows.start));
        sharing.filter(|other| !std::ptr::eq(*other, band) && other.rows.end > rows.start)
    }

    fn conflict_of(&self, one: &Band, other: &Band) -> Option<u32> {
        let is_shorter = one.entries.len() <= other.entries.len();
        let (few, many) = if is_shorter { (one, other) } else { (other, one) };
        let overlaps = |entry: &&Entry| {
            let furthest = self.furthest(many, u64::from(entry.cols.end - 1));
            furthest.is_some_and(|(end, _)| end > entry.cols.start)
        };
        self.entries(few).iter().find(overlaps).map(|entry| entry.number)
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use proptest::prelude::*;
    use talpf_runtime::Rect;

    use super::super::Kind;
    use super::super::round::RoundWindows;
    use super::*;
    use crate::numbers::Rank;

    /// A matrix of slot 0, and a row that is slot 1.
    const SIZES: [(u32, u32); 2] = [(9, 7), (1, 60)];
    const KINDS: [Kind; 3] = [Kind::Read, Kind::Update, Kind::Write];

    fn area() -> impl Strategy<Value = Area> {
        let access = (0..2u32, prop::bool::weighted(0.3), any::<[prop::sample::Index; 4]>());
        access.prop_map(|(slot, is_read, corners)| {
            let (rows, cols) = SIZES[slot as usize];
            let (row, col) = (corners[0].index(rows as usize), corners[1].index(cols as usize));
            // Small, so that many do not overlap.
            let (height, width) = (corners[2].index(3), corners[3].index(4));
            let (row_end, col_end) = ((row + height) as u32, (col + width) as u32);
            let (row_end, col_end) = (row_end.min(rows), col_end.min(cols));
            let rect = Rect { row: row as u32, row_end, col: col as u32, col_end };
            let kind = if is_read { Kind::Read } else { Kind::Write };
            Area { slot, rect, cols: u64::from(cols), kind }
        })
    }

    proptest! {
        /// Compares with all pairs, one after the other.
        #[test]
        fn a_conflict_is_found_if_there_is_one(each in prop::collection::vec(area(), 0..40)) {
            let mut areas = Areas::default();
            each.iter().for_each(|area| areas.push(*area));
            let conflicts = |one: &Area| {
                each.iter().filter(|other| one.conflicts(other)).count()
                    > usize::from(one.conflicts(one))
            };
            match areas.sort() {
                Ok(()) => prop_assert!(!each.iter().any(conflicts)),
                Err(number) => prop_assert!(conflicts(&each[number]), "{:?}", each[number]),
            }
        }

        /// Compares with a check of each.
        #[test]
        fn a_window_is_found_if_one_covers_the_claim(
            each in prop::collection::vec(area(), 0..60),
            slot in 0..3u32, kind in prop::sample::select(&KINDS[..]), index in 0..70u64, len in 0..20u64,
            rows in 1..4u32,
        ) {
            let mut areas = Areas::default();
            // Areas that overlap are no windows of one sync.
            for area in &each {
                if !areas.as_slice().iter().any(|before| before.conflicts(area)) {
                    areas.push(*area);
                }
            }
            prop_assert!(areas.sort().is_ok());
            let stride = SIZES[slot as usize % 2].1;
            let rows = if len == 0 { 1 } else { rows };
            let end = index + u64::from((rows - 1) * stride) + len;
            let claim = Claim { source: Rank(0), slot, index, end, rows, stride, kind, raw: false };
            let each = areas.as_slice().to_vec();
            let known = each.iter().any(|area| area.covers(&claim));
            let mut windows = RoundWindows::default();
            windows.declare(&mut areas, &mut []);
            let found = windows.covering(&claim);
            prop_assert_eq!(found.is_some(), known, "{:?} in {:?}", claim, each);
            prop_assert!(found.is_none_or(|number| each[number].covers(&claim)));
        }
    }
}
