//! Buffers of a collective that is under way, and its operator.
//!
//! The program's buffers are reached by the addresses they had when the collective started: the
//! request keeps them, unused, until the collective has ended. Rectangles are packed at the start,
//! and the output is unpacked at the end. Schedules keep the spans of messages under way apart from
//! those that steps touch, so references are made to exactly the span of a step and end with the
//! step.
#![allow(unsafe_code, reason = "works on memory that messages under way use other parts of")]

use bytemuck::Pod;
use talpf_runtime::ByteLayout;

use super::schedule::{BufferRole, Span};
use crate::operator::Fold;

/// Buffers and operator that the steps of a collective work on, whatever its elements are.
///
/// A panic of the program's operator leaves the folds.
pub(super) trait Operands: Send {
    /// Returns the length of an element in bytes.
    fn element_bytes(&self) -> usize;

    /// Describes a span for a transport.
    fn layout(&self, span: Span) -> ByteLayout;

    /// Copies a span to another of the same length.
    fn copy(&mut self, from: Span, to: Span);

    /// Folds two spans of equal lengths into the left one: `left = left op right`.
    fn fold_into_left(&mut self, left: Span, right: Span);

    /// Folds two spans of equal lengths into the right one: `right = left op right`.
    fn fold_into_right(&mut self, left: Span, right: Span);

    /// Unpacks the output into the rectangle of the program. The last use of the buffers.
    fn unpack(&mut self);
}

/// Input, output and scratch of a collective, with its operator.
pub(super) struct Memory<T> {
    input: Area<T>,
    output: Area<T>,
    scratch: Area<T>,
    fold: Option<Box<dyn Fold<T>>>,
}

/// Consecutive elements.
struct Area<T> {
    first: *mut T,
    len: usize,
    /// Memory that `first` points to, if that is not a buffer of the program. Not touched while in
    /// use.
    owned: Vec<T>,
    /// Byte layout of the rectangle that `owned` is packed from.
    rectangle: Option<ByteLayout>,
}

// SAFETY: the addresses stand for elements that may change threads (`T` is plain) and that
// nobody else uses.
unsafe impl<T: Send> Send for Memory<T> {}

impl<T: Pod> Area<T> {
    fn empty() -> Self {
        Area::of_elements(Vec::new())
    }

    fn of_elements(mut owned: Vec<T>) -> Self {
        let (first, len) = (owned.as_mut_ptr(), owned.len());
        Area { first, len, owned, rectangle: None }
    }

    /// # Safety
    ///
    /// `layout` is that of a buffer of `T` which nobody uses while the area is in use.
    unsafe fn of_buffer(layout: ByteLayout) -> Self {
        let len = layout.len;
        if layout.rows == 1 {
            let first = layout.first.cast();
            return Area { first, len, owned: Vec::new(), rectangle: None };
        }
        let mut packed = Vec::with_capacity(len);
        for row in 0..layout.rows {
            // SAFETY: the row is one of the buffer's, by the caller, and nobody writes it.
            packed.extend_from_slice(unsafe { &*row_of(&layout, row) });
        }
        Area { rectangle: Some(layout), ..Area::of_elements(packed) }
    }

    fn at(&self, span: Span) -> *mut T {
        let end = span.start.checked_add(span.len);
        assert!(end.is_some_and(|end| end <= self.len), "{span:?} of {} elements", self.len);
        // SAFETY: the span lies in the area.
        unsafe { self.first.add(span.start) }
    }
}

/// Returns a row of a rectangle of `T`.
fn row_of<T>(layout: &ByteLayout, row: usize) -> *mut [T] {
    let first = layout.first.wrapping_add(row * layout.stride_bytes);
    let len = layout.row_bytes.checked_div(size_of::<T>()).unwrap_or(0);
    std::ptr::slice_from_raw_parts_mut(first.cast(), len)
}

impl<T: Pod> Memory<T> {
    /// # Safety
    ///
    /// The layouts are those of buffers of `T`, the output's of one that can be written, which
    /// nobody uses before the memory is dropped.
    pub(super) unsafe fn new(
        input: Option<ByteLayout>,
        output: Option<ByteLayout>,
        scratch: usize,
        fold: Option<Box<dyn Fold<T>>>,
    ) -> Self {
        let area = |layout| match layout {
            // SAFETY: passed on to the caller.
            Some(layout) => unsafe { Area::of_buffer(layout) },
            None => Area::empty(),
        };
        let (input, output) = (area(input), area(output));
        Memory { input, output, scratch: Area::of_elements(vec![T::zeroed(); scratch]), fold }
    }

    fn area(&self, role: BufferRole) -> &Area<T> {
        match role {
            BufferRole::Input => &self.input,
            BufferRole::Output => &self.output,
            BufferRole::Scratch => &self.scratch,
        }
    }

    fn at(&self, span: Span) -> *mut T {
        self.area(span.role).at(span)
    }
}

impl<T: Pod + Send> Operands for Memory<T> {
    fn element_bytes(&self) -> usize {
        size_of::<T>()
    }

    fn layout(&self, span: Span) -> ByteLayout {
        ByteLayout {
            first: self.at(span).cast(),
            rows: 1,
            row_bytes: span.len * size_of::<T>(),
            stride_bytes: 0,
            len: span.len,
        }
    }

    fn copy(&mut self, from: Span, to: Span) {
        let (source, target, len) = (self.at(from), self.at(to), from.len.min(to.len));
        // SAFETY: both spans lie in their areas, no message under way uses them (see the module
        // text), and overlap is allowed.
        unsafe { std::ptr::copy(source, target, len) };
    }

    fn fold_into_left(&mut self, left: Span, right: Span) {
        let Some(fold) = &self.fold else { return };
        // SAFETY: no message under way writes the right span, and it does not overlap the left.
        let right = unsafe { std::slice::from_raw_parts(self.at(right), right.len) };
        // SAFETY: no message under way uses the left span.
        let left = unsafe { std::slice::from_raw_parts_mut(self.at(left), left.len) };
        fold.fold_left(left, right);
    }

    fn fold_into_right(&mut self, left: Span, right: Span) {
        let Some(fold) = &self.fold else { return };
        // SAFETY: no message under way writes the left span, and it does not overlap the right.
        let left = unsafe { std::slice::from_raw_parts(self.at(left), left.len) };
        // SAFETY: no message under way uses the right span.
        let right = unsafe { std::slice::from_raw_parts_mut(self.at(right), right.len) };
        fold.fold_right(left, right);
    }

    fn unpack(&mut self) {
        let Area { owned, rectangle: Some(layout), .. } = &self.output else { return };
        let cols = owned.len().checked_div(layout.rows).unwrap_or(0).max(1);
        for (row, elements) in owned.chunks_exact(cols).enumerate() {
            // SAFETY: the buffer can be written and nobody uses it, by the contract of `new`.
            unsafe { &mut *row_of(layout, row) }.copy_from_slice(elements);
        }
    }
}
