//! The last handle of an array, and the end of the array after it.
#![allow(unsafe_code, reason = "owns an array that accesses point to as well")]

use std::ptr::NonNull;
use std::sync::Arc;

use ndarray::Ix1;

use super::{ArrayCore, Region, Tiling};
use crate::error::Error;
use crate::group::GroupInner;
use crate::record::Role;
use crate::task::TaskBuilder;

/// The last handle of an array: dropping it frees the memory once no access is open.
///
/// A `Box` would claim to be the only pointer to an array that accesses point to as well.
pub(crate) struct Owner {
    core: NonNull<ArrayCore>,
    group: Arc<GroupInner>,
}

// SAFETY: stands for a `Box<ArrayCore>`, which is `Send` and `Sync`.
unsafe impl Send for Owner {}
// SAFETY: as above.
unsafe impl Sync for Owner {}

impl Owner {
    /// Makes an array of `group`.
    ///
    /// **Errors**: a tile without elements; too many rows or columns.
    pub(super) fn new<T: Send + Sync + 'static>(
        group: &Arc<GroupInner>,
        values: Vec<T>,
        rows: usize,
        cols: usize,
        tiling: Tiling,
    ) -> Result<Self, Error> {
        let core = ArrayCore::new(&group.arrays, values, group.memory(), rows, cols, tiling)?;
        group.note_tile(core.tiles().largest().saturating_mul(size_of::<T>()));
        Ok(Owner { core: NonNull::from(Box::leak(core)), group: Arc::clone(group) })
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
        let in_use = core.domain().lock().any_open(core.map_index());
        if in_use {
            retire(&self.group, self.core);
        } else {
            // SAFETY: leaked by `new`; this was the last handle, and no access is open.
            drop(unsafe { Box::from_raw(self.core.as_ptr()) });
        }
    }
}

/// Frees an array once every access to it has closed. Accesses that a hang leaves open keep the
/// memory.
///
/// **Ordering**: an access that is open behind the fence of `hold_open` is of a task whose
/// completion, if the shutdown sees it, comes with the count of this call: so the task that
/// frees the array is spawned before the shutdown ends, on whichever thread.
#[cold]
fn retire(group: &Arc<GroupInner>, core: NonNull<ArrayCore>) {
    let _open = group.hold_open();
    let core = Retired(core);
    // SAFETY: nobody else frees the array: the task below does, once its access has closed, or
    // this function if there is no such task or it is complete first.
    let array = unsafe { ArrayCore::of_open_access(core.0.as_ptr()) };
    if !array.domain().lock().any_open(array.map_index()) {
        return core.free();
    }
    let region = Region::<'_, (), Ix1>::new(array, array.extent());
    let task = TaskBuilder::new(group, "free").role(Role::Cleanup).inout(&region);
    // The spawn borrows the array, and the task may be complete before the spawn returns.
    let core = Arc::new(core);
    let of_task = Arc::clone(&core);
    let spawned = task.spawn(move |guard| {
        drop(guard);
        Arc::into_inner(of_task).into_iter().for_each(Retired::free);
    });
    if spawned.is_ok() {
        Arc::into_inner(core).into_iter().for_each(Retired::free);
    }
}

/// An array without handles, about to be freed.
struct Retired(NonNull<ArrayCore>);

// SAFETY: stands for a `Box<ArrayCore>`, which is `Send`.
unsafe impl Send for Retired {}
// SAFETY: as above; nothing can be done with a shared one.
unsafe impl Sync for Retired {}

impl Retired {
    /// Frees the array, whose last access has closed.
    fn free(self) {
        // SAFETY: the last handle has leaked the box, none is left to declare an access with, and
        // the last one that was declared has closed.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
