//! Guards, through which a body reaches the regions that it declared.
//!
//! A guard is the right to a region. It may be moved anywhere, into another task's operation for
//! instance; the region is released when it drops (R2). While a body unwinds it is not known yet
//! whether the task fails: guards that drop then release their regions when the body has ended or,
//! if it has caught the panic, when it drops the next guard or awaits. [`In`] reads, [`Out`],
//! [`InOut`] and [`Commutative`] write, and [`Concurrent`] shares. Guards of arrays are slices;
//! guards of matrices have rows and an [`ndarray`] view.
#![allow(unsafe_code, reason = "turns the right to a region into references to its elements")]

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use ndarray::{ArrayView2, ArrayViewMut2, Ix1, Ix2, ShapeBuilder};

use crate::byte_layout::ByteLayout;
use crate::data::{ArrayLabel, Invariant, Rect};
use crate::dependency::OpenAccess;
use crate::lend::Lend;
use crate::record::{AccessId, Accesses, RecordId, record};
use crate::task;

/// An iterator over the accesses of a task, as many as its body has guards.
pub struct Cursor(Accesses);

impl Cursor {
    #[inline]
    pub(crate) fn new(task: RecordId) -> Self {
        Cursor(Accesses::of(record(task)))
    }

    /// Returns the next access of a task that starts, for its guard.
    #[inline]
    pub(crate) fn next_open(&mut self) -> OpenAccess {
        let access = self.next_access();
        // SAFETY: the accesses of a task that starts are open, and each has one guard, which closes
        // it.
        unsafe { OpenAccess::new(access) }
    }

    #[inline]
    pub(crate) fn next_access(&mut self) -> AccessId {
        match self.0.next() {
            Some(access) => access,
            // Not a panic, which would have to drop the guards made so far: that costs every call.
            None => std::process::abort(),
        }
    }

    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.0.len() > 0
    }
}

/// A value made of one access of a starting task.
pub trait Guard: Send + 'static {
    #[doc(hidden)]
    fn of_access(access: OpenAccess) -> Self;
    /// Returns `true` for the guard of `access` that does nothing but close it when it drops.
    #[doc(hidden)]
    #[inline]
    fn is_only_of(&self, _access: AccessId) -> bool {
        false
    }
}

/// The open access of a guard, closed when it drops.
struct GuardedAccess(OpenAccess);

impl Drop for GuardedAccess {
    #[inline]
    fn drop(&mut self) {
        if task::is_unwinding() {
            let access = self.0;
            // SAFETY: this is dropped, once, and so the last to have the access.
            task::defer_release(move || unsafe { task::release(access) });
        } else {
            // SAFETY: as above.
            unsafe { task::release(self.0) };
        }
    }
}

impl GuardedAccess {
    /// Forgets the guard and leaves the access open.
    fn into_access(self) -> OpenAccess {
        ManuallyDrop::new(self).0
    }
}

/// The common part of all guards.
struct GuardedRegion<T> {
    first: *mut T,
    rows: usize,
    cols: usize,
    stride: usize,
    access: GuardedAccess,
}

impl<T> GuardedRegion<T> {
    #[inline]
    fn of_access(access: OpenAccess) -> Self {
        let slot = access.slot();
        let (core, rect) = (access.array(), slot.rect());
        let (first, stride) = (core.first_of(&rect), core.stride());
        // The spawn has checked that the region lies in the array.
        let (rows, cols) = ((rect.row_end - rect.row) as usize, (rect.col_end - rect.col) as usize);
        GuardedRegion { first, rows, cols, stride, access: GuardedAccess(access) }
    }

    /// Returns row `row`, which must be below `rows`.
    #[inline]
    fn row(&self, row: usize) -> *mut [T] {
        assert!(row < self.rows, "row {row} of a region with {} rows", self.rows);
        // SAFETY: row and columns lie in the region, hence in the array.
        let start = unsafe { self.first.add(row * self.stride) };
        std::ptr::slice_from_raw_parts_mut(start, self.cols)
    }

    #[inline]
    fn line(&self) -> *mut [T] {
        std::ptr::slice_from_raw_parts_mut(self.first, self.rows * self.cols)
    }

    fn rect(&self) -> Rect {
        self.access.0.slot().rect()
    }

    fn array_id(&self) -> u64 {
        self.access.0.array().id()
    }

    fn array_label(&self) -> ArrayLabel {
        self.access.0.array().label()
    }
}

/// The right to a region, without access to its elements.
#[doc(hidden)]
pub struct Hold {
    access: GuardedAccess,
}

impl Hold {
    /// Releases the region as poisoned, as the guard of a task that writes does.
    pub fn fail(self, reason: impl Into<String>) {
        record(self.access.0.task()).fail(reason.into());
    }
}

impl Guard for Hold {
    fn of_access(access: OpenAccess) -> Self {
        Hold { access: GuardedAccess(access) }
    }
}

macro_rules! guard {
    ($(#[$doc:meta])* $name:ident, $bound:ident) => {
        $(#[$doc])*
        ///
        /// `D` is `Ix1` for a contiguous region and `Ix2` for a rectangle.
        pub struct $name<T, D = Ix1> {
            part: GuardedRegion<T>,
            marker: PhantomData<(Invariant<T>, D)>,
        }

        // SAFETY: the guard is the only right of its kind to the elements while it lives (the
        // dependency rules), and elements may be used from any thread by the bound.
        unsafe impl<T: $bound, D> Send for $name<T, D> {}
        // SAFETY: as above; a shared guard only reads.
        unsafe impl<T: Sync, D> Sync for $name<T, D> {}

        impl<T: Send + Sync + 'static, D: 'static> Guard for $name<T, D> {
            #[inline]
            fn of_access(access: OpenAccess) -> Self {
                $name { part: GuardedRegion::of_access(access), marker: PhantomData }
            }

            #[inline]
            fn is_only_of(&self, access: AccessId) -> bool {
                *self.part.access.0 == access
            }
        }

        impl<T, D> $name<T, D> {
            /// Returns the rectangle in the array.
            pub fn rect(&self) -> Rect {
                self.part.rect()
            }

            /// Returns the number that identifies the array in this process.
            #[doc(hidden)]
            pub fn array_id(&self) -> u64 {
                self.part.array_id()
            }

            /// Gives up the access to the elements.
            #[doc(hidden)]
            #[inline]
            pub fn into_hold(self) -> Hold {
                Hold { access: self.part.access }
            }

            /// Returns the name of the array in reports.
            pub fn array_label(&self) -> ArrayLabel {
                self.part.array_label()
            }

            /// Iterates over the rows as slices; a contiguous region is one row.
            #[doc(hidden)]
            pub fn row_slices(&self) -> impl Iterator<Item = &[T]> {
                // SAFETY: while the guard lives nobody has a `&mut` to the region, but through it.
                (0..self.part.rows).map(|row| unsafe { &*self.part.row(row) })
            }

            /// Returns where the bytes of the elements are. They may be read as long as the guard
            /// lives, and written if it is a guard that writes.
            #[doc(hidden)]
            #[inline]
            pub fn byte_layout(&self) -> ByteLayout {
                let GuardedRegion { first, rows, cols, stride, .. } = self.part;
                ByteLayout::of_rows(first, (rows, cols), stride)
            }
        }

        impl<T> Deref for $name<T> {
            type Target = [T];

            #[inline]
            fn deref(&self) -> &[T] {
                // SAFETY: while the guard lives nobody has a `&mut` to the region, but through it.
                unsafe { &*self.part.line() }
            }
        }

        impl<T> $name<T, Ix2> {
/// Returns the number of rows.
            pub fn rows(&self) -> usize {
                self.part.rows
            }

/// Returns the number of columns.
            pub fn cols(&self) -> usize {
                self.part.cols
            }

            /// Returns one row. **Panics** if there is no such row, as a slice does.
            #[inline]
            pub fn row(&self, row: usize) -> &[T] {
                // SAFETY: while the guard lives nobody has a `&mut` to the region, but through it.
                unsafe { &*self.part.row(row) }
            }

            /// Returns a view of the whole region.
            pub fn view(&self) -> ArrayView2<'_, T> {
                let GuardedRegion { first, rows, cols, stride, .. } = self.part;
                let shape = (rows, cols).strides((stride, 1));
                // SAFETY: the elements named by the shape are those of the region, to which nobody
                // has a `&mut` while the guard lives, but through it.
                unsafe { ArrayView2::from_shape_ptr(shape, first) }
            }
        }

        impl<T, D> fmt::Debug for $name<T, D> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let name = stringify!($name);
                write!(f, "{name} of {}", self.part.array_label().part(self.part.rect()))
            }
        }
    };
}

macro_rules! writing_guard {
    ($name:ident) => {
        impl<T> DerefMut for $name<T> {
            #[inline]
            fn deref_mut(&mut self) -> &mut [T] {
                // SAFETY: nobody else reads or writes the region while the guard lives.
                unsafe { &mut *self.part.line() }
            }
        }

        impl<T, D> $name<T, D> {
            /// As `row_slices`, to be written.
            #[doc(hidden)]
            pub fn row_slices_mut(&mut self) -> impl Iterator<Item = &mut [T]> {
                // SAFETY: nobody else reads or writes the region while the guard lives, and rows do
                // not overlap.
                (0..self.part.rows).map(|row| unsafe { &mut *self.part.row(row) })
            }

            /// Releases the region as poisoned: its task has failed, and tasks that depend on the
            /// region do not run. For operations that should have filled it and did not.
            pub fn fail(self, reason: impl Into<String>) {
                self.into_hold().fail(reason);
            }
        }

        impl<T> $name<T, Ix2> {
            /// Returns one row. **Panics** if there is no such row, as a slice does.
            #[inline]
            pub fn row_mut(&mut self, row: usize) -> &mut [T] {
                // SAFETY: nobody else reads or writes the region while the guard lives.
                unsafe { &mut *self.part.row(row) }
            }

            /// Returns a mutable view of the whole region.
            pub fn view_mut(&mut self) -> ArrayViewMut2<'_, T> {
                let GuardedRegion { first, rows, cols, stride, .. } = self.part;
                let shape = (rows, cols).strides((stride, 1));
                // SAFETY: the elements named by the shape are those of the region, which nobody
                // else reads or writes while the guard lives.
                unsafe { ArrayViewMut2::from_shape_ptr(shape, first) }
            }
        }
    };
}

macro_rules! lending_guard {
    ($name:ident) => {
        impl<T, D> $name<T, D> {
            /// Lends the region to children of the task that has declared it.
            pub fn lend(self) -> Lend<T, D> {
                Lend::of_forgotten(self.part.access.into_access())
            }
        }
    };
}

guard! {
    /// The right to read a region.
    In, Sync
}
guard! {
    /// The right to overwrite a region. Its contents before that are defined but unspecified.
    Out, Send
}
guard! {
    /// The right to read and write a region.
    InOut, Send
}
guard! {
    /// The right to update a region through shared references, together with other tasks that have
    /// the same: for elements that allow that, such as atomics.
    Concurrent, Sync
}
guard! {
    /// The right to read and write a region, in any order with other commutative tasks, which wait
    /// meanwhile.
    Commutative, Send
}
writing_guard!(Out);
writing_guard!(InOut);
writing_guard!(Commutative);
lending_guard!(In);
lending_guard!(Out);
lending_guard!(InOut);
