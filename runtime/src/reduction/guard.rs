//! The guard of a reduction: a private copy of its region.
#![allow(unsafe_code, reason = "gives up the access of a reduction")]

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use ndarray::{ArrayView2, ArrayViewMut2, Ix1, Ix2};

use super::{Member, PrivateCopy};
use crate::callback;
use crate::data::Rect;
use crate::dependency::OpenAccess;
use crate::task;

/// A private copy of a region, to reduce values into. It begins with the identity of the operator,
/// or with the contributions of tasks before this one; it is combined with the region when the
/// tasks of the reduction have ended.
///
/// `D` is `Ix1` for a contiguous region and `Ix2` for a rectangle.
pub struct Reduction<T: 'static, D = Ix1> {
    copy: PrivateCopy<T>,
    access: Option<ReductionAccess<T>>,
    rect: Rect,
    marker: PhantomData<fn() -> D>,
}

/// The open access of a reduction, and the task's membership.
struct ReductionAccess<T: 'static> {
    member: Member<T>,
    access: OpenAccess,
}

impl<T: 'static, D> Reduction<T, D> {
    pub(super) fn new(member: Member<T>, access: OpenAccess) -> Self {
        let rect = access.slot().rect();
        let access = Some(ReductionAccess { member, access });
        Reduction { copy: PrivateCopy::default(), access, rect, marker: PhantomData }
    }

    /// Gets the copy; the guard is complete before, in case the operator panics.
    pub(super) fn fill(&mut self) {
        if let Some(access) = &self.access {
            self.copy = access.member.take();
        }
    }

    /// Returns the rectangle in the array.
    pub fn rect(&self) -> Rect {
        self.rect
    }
}

impl<T: 'static> ReductionAccess<T> {
    /// Adds the copy to the reduction and closes the access.
    fn release(mut self, copy: PrivateCopy<T>) {
        let task = self.access.task();
        let counts = !copy.is_empty() && !task::has_failed(task);
        let (added, dropped) = if counts { (Some(copy), None) } else { (None, Some(copy)) };
        let dropped = callback::call("a copy that drops", || drop(dropped));
        if let Err(reason) = self.member.leave(added).and(dropped) {
            task::fail(task, reason);
        }
        // SAFETY: the guard has given up this access, once, and its copy is no part of the region.
        unsafe { task::release(self.access) };
    }
}

impl<T: 'static, D> Drop for Reduction<T, D> {
    fn drop(&mut self) {
        let copy = std::mem::take(&mut self.copy);
        let Some(access) = self.access.take() else {
            return;
        };
        if task::is_unwinding() {
            task::defer_release(move || access.release(copy));
        } else {
            access.release(copy);
        }
    }
}

impl<T> Deref for Reduction<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.copy
    }
}

impl<T> DerefMut for Reduction<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.copy
    }
}

impl<T> Reduction<T, Ix2> {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rect.rows()
    }

    /// Returns the number of columns.
    pub fn cols(&self) -> usize {
        self.rect.cols()
    }

    /// Returns one row. **Panics** if there is no such row, as a slice does.
    #[inline]
    pub fn row(&self, row: usize) -> &[T] {
        let cols = self.cols();
        &self.copy[row * cols..][..cols]
    }

    /// Returns one row. **Panics** if there is no such row, as a slice does.
    #[inline]
    pub fn row_mut(&mut self, row: usize) -> &mut [T] {
        let cols = self.cols();
        &mut self.copy[row * cols..][..cols]
    }

    /// Returns a view of the whole copy.
    pub fn view(&self) -> ArrayView2<'_, T> {
        let shape = (self.rows(), self.cols());
        match ArrayView2::from_shape(shape, &self.copy) {
            Ok(view) => view,
            Err(_) => unreachable!("the copy has the shape of its region"),
        }
    }

    /// Returns a mutable view of the whole copy.
    pub fn view_mut(&mut self) -> ArrayViewMut2<'_, T> {
        let shape = (self.rows(), self.cols());
        match ArrayViewMut2::from_shape(shape, &mut self.copy) {
            Ok(view) => view,
            Err(_) => unreachable!("the copy has the shape of its region"),
        }
    }
}

impl<T, D> fmt::Debug for Reduction<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reduction of {}", self.rect)
    }
}
