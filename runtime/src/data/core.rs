//! The common part of arrays, matrices and tokens: memory, tiling, and their group's domain.
//!
//! The memory of an array is freed when its last handle is dropped **and** no access to it is open:
//! the last handle spawns a task that has the whole array as `inout` and frees it. So accesses,
//! guards and regions in flight need no reference counts of their own.
#![allow(unsafe_code, reason = "hands out the memory of arrays through raw pointers")]

use std::any::Any;
use std::ops::RangeInclusive;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use talpf_primitives::Mutex;

use super::{ArrayLabel, Rect, Tiling, live};
use crate::access::{Domain, TileLock};
use crate::error::Error;
use crate::group::GroupInner;

/// The untyped part of an array. It does not move while accesses to it are open.
#[repr(align(16))]
pub(crate) struct ArrayCore {
    id: u64,
    data: *mut u8,
    extent: Rect,
    row_tiles: Axis,
    col_tiles: Axis,
    /// Rectangles of the tiles, by number. Empty if the array has no element.
    tiles: Box<[Rect]>,
    map_index: usize,
    group: Arc<GroupInner>,
    /// First name that the array was given.
    name: OnceLock<Arc<str>>,
    /// Locks by tile, allocated for the first commutative access.
    tile_locks: OnceLock<Box<[TileLock]>>,
    /// Set once a failed task has poisoned some of the array.
    poisoned: AtomicBool,
    /// The `Vec` that `data` points into, not touched until it is dropped.
    _storage: Box<dyn Any + Send>,
}

// SAFETY: `data` is only dereferenced by guards, which the dependency rules keep from conflicting;
// the elements are `Send` (every constructor asks for it) and so is the storage.
unsafe impl Send for ArrayCore {}
// SAFETY: as above; everything else in it is not changed after construction.
unsafe impl Sync for ArrayCore {}

impl ArrayCore {
    pub(super) fn new<T: Send + Sync + 'static>(
        group: &Arc<GroupInner>,
        mut values: Vec<T>,
        rows: usize,
        cols: usize,
        tiling: Tiling,
    ) -> Result<Box<Self>, Error> {
        let extent = Rect::new(0, dimension("rows", rows)?, 0, dimension("columns", cols)?);
        let row_tiles = Axis::new("tile rows", tiling.rows, tiling.first_rows, extent.row_end)?;
        let col_tiles = Axis::new("tile columns", tiling.cols, tiling.first_cols, extent.col_end)?;
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let data = values.as_mut_ptr().cast();
        let tiles = row_tiles.count as usize * col_tiles.count as usize;
        let tile_rows = row_tiles.size.min(extent.row_end) as usize;
        let tile_cols = col_tiles.size.min(extent.col_end) as usize;
        group.note_tile(tile_rows.saturating_mul(tile_cols).saturating_mul(size_of::<T>()));
        let map_index = group.domain.lock().add_array(tiles);
        let tiles = (!extent.is_empty()).then(|| tile_rects(&extent, &row_tiles, &col_tiles));
        let core = Box::new(ArrayCore {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            data,
            extent,
            row_tiles,
            col_tiles,
            tiles: tiles.unwrap_or_default(),
            map_index,
            group: Arc::clone(group),
            name: OnceLock::new(),
            tile_locks: OnceLock::new(),
            poisoned: AtomicBool::new(false),
            _storage: Box::new(values),
        });
        live::add(&core);
        Ok(core)
    }

    /// Returns the array of an access that is open or that is being registered: it is freed by a
    /// task that waits for every access (see the module text).
    ///
    /// # Safety
    /// `core` is the array of such an access, which is open as long as the result is used.
    #[inline]
    pub(crate) unsafe fn of_open_access(core: *const ArrayCore) -> &'static ArrayCore {
        // SAFETY: the pointer was made of a reference when the access was declared, and the array
        // outlives the access.
        unsafe { &*core }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Gives the array a name, unless it has one.
    pub(super) fn set_name(&self, name: Arc<str>) {
        if self.name.set(name).is_ok() {
            live::add(self);
        }
    }

    pub(crate) fn label(&self) -> ArrayLabel {
        ArrayLabel::new(self.id, self.name.get().cloned(), self.extent)
    }

    #[inline]
    pub(crate) fn extent(&self) -> Rect {
        self.extent
    }

    /// Checks that a region lies inside the array.
    #[inline]
    pub(crate) fn check(&self, region: Rect) -> Result<(), Error> {
        let in_order = region.row <= region.row_end && region.col <= region.col_end;
        if in_order && self.extent.covers(&region) {
            return Ok(());
        }
        Err(self.out_of_bounds(region))
    }

    #[cold]
    fn out_of_bounds(&self, region: Rect) -> Error {
        Error::RegionOutOfBounds { region, array: self.label() }
    }

    pub(crate) fn group(&self) -> &Arc<GroupInner> {
        &self.group
    }

    #[inline]
    pub(crate) fn domain(&self) -> &Mutex<Domain> {
        &self.group.domain
    }

    #[inline]
    pub(crate) fn map_index(&self) -> usize {
        self.map_index
    }

    /// Returns the number of workers of the array's runtime.
    pub(crate) fn workers(&self) -> usize {
        self.group.shared.workers()
    }

    /// Returns the locks of the tiles.
    pub(crate) fn tile_locks(&self) -> &[TileLock] {
        let tiles = self.row_tiles.count as usize * self.col_tiles.count as usize;
        self.tile_locks.get_or_init(|| std::iter::repeat_with(TileLock::new).take(tiles).collect())
    }

    /// Notes that some of the array is poisoned. **Ordering**: seen by a task that acquires a tile
    /// lock which is released after this.
    pub(crate) fn note_poisoned(&self) {
        self.poisoned.store(true, Ordering::Relaxed);
    }

    pub(crate) fn was_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Relaxed)
    }

    /// Returns a pointer to the first element, of the type that the array was made of.
    #[inline]
    pub(crate) fn data<T>(&self) -> *mut T {
        self.data.cast()
    }

    /// Returns a pointer to the first element of `rect`, which lies in the array, of the type that
    /// the array was made of.
    #[inline]
    pub(crate) fn first_of<T>(&self, rect: &Rect) -> *mut T {
        // For an empty region it may point behind the array.
        self.data::<T>().wrapping_add(rect.row as usize * self.stride() + rect.col as usize)
    }

    /// Returns the number of elements from one row to the next.
    #[inline]
    pub(crate) fn stride(&self) -> usize {
        self.extent.col_end as usize
    }

    /// Returns the tile that `rect` touches, if it touches just one.
    #[inline]
    pub(crate) fn single_tile(&self, rect: &Rect) -> Option<usize> {
        if rect.is_empty() {
            return None;
        }
        let row = self.row_tiles.single(rect.row, rect.row_end)?;
        let col = self.col_tiles.single(rect.col, rect.col_end)?;
        Some((row * self.col_tiles.count + col) as usize)
    }

    /// Calls `visit` with every tile that `rect`, which is not empty, touches, and the part of
    /// `rect` in it.
    pub(crate) fn for_each_tile(&self, rect: &Rect, mut visit: impl FnMut(usize, Rect)) {
        for tile_row in self.row_tiles.tiles(rect.row, rect.row_end) {
            for tile_col in self.col_tiles.tiles(rect.col, rect.col_end) {
                let tile = Rect::new(
                    self.row_tiles.start(tile_row),
                    self.row_tiles.start(tile_row + 1),
                    self.col_tiles.start(tile_col),
                    self.col_tiles.start(tile_col + 1),
                );
                let number = (tile_row * self.col_tiles.count + tile_col) as usize;
                visit(number, rect.intersection(&tile));
            }
        }
    }

    /// Returns the rectangle of tile `row`, `col` and its number. If there is no such tile it has
    /// no number, and the rectangle lies outside the array, so that the spawn refuses it.
    #[inline]
    pub(super) fn tile(&self, row: usize, col: usize) -> (Rect, Option<u32>) {
        if row < self.row_tiles.count as usize && col < self.col_tiles.count as usize {
            let number = row * self.col_tiles.count as usize + col;
            if let Some(rect) = self.tiles.get(number) {
                return (*rect, Some(number as u32));
            }
        }
        (self.no_tile(row, col), None)
    }

    #[cold]
    fn no_tile(&self, row: usize, col: usize) -> Rect {
        let rows = self.row_tiles.range(row, self.extent.row_end);
        let cols = self.col_tiles.range(col, self.extent.col_end);
        let outside = |end: u32| (end, end.saturating_add(1));
        let (row_start, row_end) = rows.unwrap_or(outside(self.extent.row_end));
        let (col_start, col_end) = cols.unwrap_or(outside(self.extent.col_end));
        Rect::new(row_start, row_end, col_start, col_end)
    }

    /// Returns the rectangle of an existing tile.
    pub(crate) fn rect_of_tile(&self, number: usize) -> Rect {
        let cols = self.col_tiles.count as usize;
        self.tile(number / cols, number % cols).0
    }

    pub(super) fn tile_counts(&self) -> (usize, usize) {
        (self.row_tiles.count as usize, self.col_tiles.count as usize)
    }
}

impl Drop for ArrayCore {
    fn drop(&mut self) {
        live::remove(self);
        self.group.domain.lock().remove_array(self.map_index);
    }
}

/// Returns the tiles of an array, row by row.
fn tile_rects(extent: &Rect, row_tiles: &Axis, col_tiles: &Axis) -> Box<[Rect]> {
    let rows = (0..row_tiles.count as usize).filter_map(|row| row_tiles.range(row, extent.row_end));
    let cols = (0..col_tiles.count as usize).filter_map(|col| col_tiles.range(col, extent.col_end));
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

/// The last handle of an array: dropping it frees the memory once no access is open.
///
/// A `Box` would claim to be the only pointer to an array that accesses point to as well.
pub(crate) struct Owner {
    core: NonNull<ArrayCore>,
}

// SAFETY: stands for a `Box<ArrayCore>`, which is `Send` and `Sync`.
unsafe impl Send for Owner {}
// SAFETY: as above.
unsafe impl Sync for Owner {}

impl Owner {
    pub(super) fn new(core: Box<ArrayCore>) -> Self {
        Owner { core: NonNull::from(Box::leak(core)) }
    }

    #[inline]
    pub(super) fn core(&self) -> &ArrayCore {
        // SAFETY: leaked by `new`, and freed after this has dropped.
        unsafe { self.core.as_ref() }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let core = self.core();
        let in_use = core.domain().lock().any_open(core.map_index);
        if in_use {
            Arc::clone(&core.group).retire(self.core);
        } else {
            // SAFETY: leaked by `new`; this was the last handle, and no access is open.
            drop(unsafe { Box::from_raw(self.core.as_ptr()) });
        }
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
