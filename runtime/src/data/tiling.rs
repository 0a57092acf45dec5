//! Tilings: the partitions of arrays into tiles, and where their tiles lie.

use std::ops::RangeInclusive;

use super::Rect;
use crate::error::Error;

/// The partition of a matrix into tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiling {
    rows: usize,
    cols: usize,
    first_rows: usize,
    first_cols: usize,
}

impl Tiling {
    /// Creates tiles of `rows` x `cols`.
    pub const fn new(rows: usize, cols: usize) -> Self {
        Tiling { rows, cols, first_rows: 0, first_cols: 0 }
    }

    /// Returns the same partition with `rows` rows in the topmost tiles and `cols` columns in the
    /// leftmost ones, fewer than in the others; 0 for as many. A matrix with one halo row above its
    /// blocks and one halo column before them has 1 and 1.
    pub const fn first(self, rows: usize, cols: usize) -> Self {
        Tiling { first_rows: rows, first_cols: cols, ..self }
    }
}

impl Default for Tiling {
    /// Creates tiles of one row and one column.
    fn default() -> Self {
        Tiling::new(1, 1)
    }
}

/// The tiles of an array.
pub(crate) struct Tiles {
    extent: Rect,
    rows: Axis,
    cols: Axis,
    /// Rectangles of the tiles, by number. Empty if the array has no element.
    rects: Box<[Rect]>,
}

impl Tiles {
    /// Divides an array of `rows` x `cols`.
    ///
    /// **Errors**: a tile without elements; more than 2^32 - 2 rows or columns.
    pub(super) fn new(rows: usize, cols: usize, tiling: Tiling) -> Result<Self, Error> {
        let extent = Rect::new(0, dimension("rows", rows)?, 0, dimension("columns", cols)?);
        let rows = Axis::new("tile rows", tiling.rows, tiling.first_rows, extent.row_end)?;
        let cols = Axis::new("tile columns", tiling.cols, tiling.first_cols, extent.col_end)?;
        let rects = (!extent.is_empty()).then(|| tile_rects(&extent, &rows, &cols));
        Ok(Tiles { extent, rows, cols, rects: rects.unwrap_or_default() })
    }

    /// Returns the rectangle of the whole array.
    #[inline]
    pub(crate) fn extent(&self) -> Rect {
        self.extent
    }

    /// Returns the tile that `rect` touches, if it touches just one.
    #[inline]
    pub(crate) fn single(&self, rect: &Rect) -> Option<usize> {
        if rect.is_empty() {
            return None;
        }
        let row = self.rows.single(rect.row, rect.row_end)?;
        let col = self.cols.single(rect.col, rect.col_end)?;
        Some((row * self.cols.count + col) as usize)
    }

    /// Returns the tile that is all of `rect`, if one is.
    #[inline]
    pub(super) fn exactly(&self, rect: &Rect) -> Option<u32> {
        let number = self.single(rect)?;
        (self.rects.get(number) == Some(rect)).then_some(number as u32)
    }

    /// Calls `visit` with every tile that `rect`, which is not empty, touches, and the part of
    /// `rect` in it.
    pub(crate) fn for_each(&self, rect: &Rect, mut visit: impl FnMut(usize, Rect)) {
        for tile_row in self.rows.tiles(rect.row, rect.row_end) {
            for tile_col in self.cols.tiles(rect.col, rect.col_end) {
                let tile = Rect::new(
                    self.rows.start(tile_row),
                    self.rows.start(tile_row + 1),
                    self.cols.start(tile_col),
                    self.cols.start(tile_col + 1),
                );
                let number = (tile_row * self.cols.count + tile_col) as usize;
                visit(number, rect.intersection(&tile));
            }
        }
    }

    /// Returns the rectangle of tile `row`, `col` and its number. If there is no such tile it has
    /// no number, and the rectangle lies outside the array, so that the spawn refuses it.
    #[inline]
    pub(super) fn at(&self, row: usize, col: usize) -> (Rect, Option<u32>) {
        if row < self.rows.count as usize && col < self.cols.count as usize {
            let number = row * self.cols.count as usize + col;
            if let Some(rect) = self.rects.get(number) {
                return (*rect, Some(number as u32));
            }
        }
        (self.no_tile(row, col), None)
    }

    #[cold]
    fn no_tile(&self, row: usize, col: usize) -> Rect {
        let rows = self.rows.range(row, self.extent.row_end);
        let cols = self.cols.range(col, self.extent.col_end);
        let outside = |end: u32| (end, end.saturating_add(1));
        let (row_start, row_end) = rows.unwrap_or(outside(self.extent.row_end));
        let (col_start, col_end) = cols.unwrap_or(outside(self.extent.col_end));
        Rect::new(row_start, row_end, col_start, col_end)
    }

    /// Returns the number of tiles.
    pub(crate) fn len(&self) -> usize {
        self.rows.count as usize * self.cols.count as usize
    }

    /// Returns the number of elements of the largest tile.
    pub(super) fn largest(&self) -> usize {
        let rows = self.rows.size.min(self.extent.row_end) as usize;
        let cols = self.cols.size.min(self.extent.col_end) as usize;
        rows.saturating_mul(cols)
    }

    /// Returns the rectangle of an existing tile.
    pub(crate) fn rect_of(&self, number: usize) -> Rect {
        let cols = self.cols.count as usize;
        self.at(number / cols, number % cols).0
    }

    /// Returns the numbers of rows and of columns of tiles.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.rows.count as usize, self.cols.count as usize)
    }
}

/// Returns the tiles of an array, row by row.
fn tile_rects(extent: &Rect, rows: &Axis, cols: &Axis) -> Box<[Rect]> {
    let rows = (0..rows.count as usize).filter_map(|row| rows.range(row, extent.row_end));
    let cols = (0..cols.count as usize).filter_map(|col| cols.range(col, extent.col_end));
    rows.flat_map(|(row, row_end)| {
        cols.clone().map(move |(col, col_end)| Rect::new(row, row_end, col, col_end))
    })
    .collect()
}

fn dimension(what: &'static str, value: usize) -> Result<u32, Error> {
    let limit = u32::MAX as usize - 1;
    match u32::try_from(value) {
        Ok(small) if value <= limit => Ok(small),
        _ => Err(Error::Size { what, value, limit }),
    }
}

/// The partition of one axis into tiles: the first tile has `first` elements, the others `size`.
struct Axis {
    size: u32,
    /// `size - first`, the elements that the first tile lacks.
    missing: u32,
    shift: Option<u32>,
    count: u32,
}

impl Axis {
    fn new(what: &'static str, size: usize, first: usize, extent: u32) -> Result<Self, Error> {
        if size == 0 {
            return Err(Error::Size { what, value: size, limit: 1 });
        }
        // A tile larger than the array is the whole array.
        let whole = extent.max(1);
        let size = u32::try_from(size).map_or(whole, |size| size.min(whole));
        let first = match u32::try_from(first) {
            Ok(0) => size,
            Ok(first) => first.min(size),
            Err(_) => size,
        };
        let missing = size - first;
        let shift = size.is_power_of_two().then(|| size.trailing_zeros());
        let mut axis = Axis { size, missing, shift, count: 1 };
        if extent > 0 {
            axis.count = axis.tile_of(extent - 1) + 1;
        }
        Ok(axis)
    }

    #[inline]
    fn tile_of(&self, at: u32) -> u32 {
        // In u64: `at + missing` may exceed u32.
        let at = u64::from(at) + u64::from(self.missing);
        match self.shift {
            Some(shift) => (at >> shift) as u32,
            None => (at / u64::from(self.size)) as u32,
        }
    }

    /// Returns the tile that contains a whole range, which is not empty.
    #[inline]
    fn single(&self, from: u32, to: u32) -> Option<u32> {
        if self.count == 1 {
            return Some(0);
        }
        let tile = self.tile_of(from);
        (to <= self.start(tile + 1)).then_some(tile)
    }

    /// Returns the bounds of tile `number` on an axis that ends at `end`.
    #[inline]
    fn range(&self, number: usize, end: u32) -> Option<(u32, u32)> {
        if number >= self.count as usize {
            return None;
        }
        let start = self.start(number as u32);
        Some((start, self.start(number as u32 + 1).min(end)))
    }

    fn tiles(&self, from: u32, to: u32) -> RangeInclusive<u32> {
        self.tile_of(from)..=self.tile_of(to - 1)
    }

    #[inline]
    fn start(&self, tile: u32) -> u32 {
        let start = u64::from(tile) * u64::from(self.size);
        u32::try_from(start.saturating_sub(u64::from(self.missing))).unwrap_or(u32::MAX)
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_axis_is_cut_without_gap_or_overlap() {
        for (extent, size, first) in
            [(10, 4, 0), (10, 4, 1), (10, 4, 3), (1, 7, 0), (9, 3, 1), (8, 8, 8), (5, 100, 2)]
        {
            let axis = Axis::new("tile", size, first, extent).unwrap();
            let mut at = 0;
            for tile in 0..axis.count {
                let (start, end) = (axis.start(tile), axis.start(tile + 1).min(extent));
                assert_eq!(start, at, "extent {extent} size {size} first {first}");
                for element in start..end {
                    assert_eq!(axis.tile_of(element), tile);
                }
                at = end;
            }
            assert_eq!(at, extent);
        }
    }
}
