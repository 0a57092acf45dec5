//! The common part of arrays, matrices and tokens: memory, tiling, and their group's domain.
//!
//! The memory of an array is freed when its last handle is dropped **and** no access to it is open:
//! the last handle spawns a task that has the whole array as `inout` and frees it. So accesses,
//! guards and regions in flight need no reference counts of their own.
#![allow(unsafe_code, reason = "hands out the memory of arrays through raw pointers")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use talpf_primitives::Mutex;

use super::memory::{ArrayMemory, Elements, place};
use super::{ArrayLabel, Rect, Tiles, Tiling, live};
use crate::dependency::{Arrays, Domain, TileLock};
use crate::error::Error;

/// The untyped part of an array. It does not move while accesses to it are open.
#[repr(align(16))]
pub(crate) struct ArrayCore {
    id: u64,
    data: *mut u8,
    tiles: Tiles,
    map_index: usize,
    arrays: Arc<Arrays>,
    /// First name that the array was given.
    name: OnceLock<Arc<str>>,
    /// Locks by tile, allocated for the first commutative access.
    tile_locks: OnceLock<Box<[TileLock]>>,
    /// Set once a failed task has poisoned some of the array.
    poisoned: AtomicBool,
    /// The elements that `data` points to, not touched until they are dropped.
    _elements: Box<dyn Elements>,
}

// SAFETY: `data` is only dereferenced by guards, which the dependency rules keep from conflicting;
// the elements are `Send` (every constructor asks for it) and so is the storage.
unsafe impl Send for ArrayCore {}
// SAFETY: as above; everything else in it is not changed after construction.
unsafe impl Sync for ArrayCore {}

impl ArrayCore {
    pub(super) fn new<T: Send + Sync + 'static>(
        arrays: &Arc<Arrays>,
        values: Vec<T>,
        memory: Option<&dyn ArrayMemory>,
        rows: usize,
        cols: usize,
        tiling: Tiling,
    ) -> Result<Box<Self>, Error> {
        let tiles = Tiles::new(rows, cols, tiling)?;
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let (data, elements) = place(values, memory);
        let map_index = arrays.domain.lock().add_array(tiles.len());
        let core = Box::new(ArrayCore {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            data,
            tiles,
            map_index,
            arrays: Arc::clone(arrays),
            name: OnceLock::new(),
            tile_locks: OnceLock::new(),
            poisoned: AtomicBool::new(false),
            _elements: elements,
        });
        live::add(core.address(), core.label());
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
            live::add(self.address(), self.label());
        }
    }

    pub(crate) fn label(&self) -> ArrayLabel {
        ArrayLabel::new(self.id, self.name.get().cloned(), self.extent())
    }

    #[inline]
    pub(crate) fn extent(&self) -> Rect {
        self.tiles.extent()
    }

    #[inline]
    pub(crate) fn tiles(&self) -> &Tiles {
        &self.tiles
    }

    /// Returns the address, which reports know the array by.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Checks that a region lies inside the array.
    #[inline]
    pub(crate) fn check(&self, region: Rect) -> Result<(), Error> {
        let in_order = region.row <= region.row_end && region.col <= region.col_end;
        if in_order && self.extent().covers(&region) {
            return Ok(());
        }
        Err(self.out_of_bounds(region))
    }

    #[cold]
    fn out_of_bounds(&self, region: Rect) -> Error {
        Error::RegionOutOfBounds { region, array: self.label() }
    }

    #[inline]
    pub(crate) fn arrays(&self) -> &Arc<Arrays> {
        &self.arrays
    }

    #[inline]
    pub(crate) fn domain(&self) -> &Mutex<Domain> {
        &self.arrays.domain
    }

    #[inline]
    pub(crate) fn map_index(&self) -> usize {
        self.map_index
    }

    /// Returns the locks of the tiles.
    pub(crate) fn tile_locks(&self) -> &[TileLock] {
        let locks = || std::iter::repeat_with(TileLock::new).take(self.tiles.len()).collect();
        self.tile_locks.get_or_init(locks)
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
        self.extent().col_end as usize
    }
}

impl Drop for ArrayCore {
    fn drop(&mut self) {
        live::remove(self.address());
        self.arrays.domain.lock().remove_array(self.map_index);
    }
}
