//! The memory of arrays, which usually is that of the `Vec` they are made of.
#![allow(unsafe_code, reason = "elements are moved into memory that a source has allocated")]

use std::fmt;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use talpf_primitives::prefer_huge_pages;

/// A source of memory for arrays, in place of that of the allocator: such as memory that other
/// processes have mapped. The elements of an array are moved there as it is made.
pub trait ArrayMemory: fmt::Debug + Send + Sync {
    /// Allocates memory; `None` if the elements are to stay where they are.
    fn allocate(&self, bytes: usize) -> Option<Box<dyn Allocation>>;
}

/// Memory for one array, given back as it drops.
///
/// # Safety
///
/// Until the drop, [`memory`](Self::memory) returns the same memory each time, at least as long as
/// was asked for. It is valid for reads and writes from any thread, and nobody else has a Rust
/// reference to it.
pub unsafe trait Allocation: Send {
    /// Returns the memory.
    fn memory(&self) -> NonNull<[u8]>;
}

/// The elements of an array, dropped with it.
pub(super) trait Elements: Send {}

impl<T: Send> Elements for Vec<T> {}

/// Elements in memory of a source.
struct Moved<T> {
    allocation: Box<dyn Allocation>,
    count: usize,
    elements: PhantomData<T>,
}

impl<T: Send> Elements for Moved<T> {}

impl<T> Moved<T> {
    fn start(&self) -> NonNull<T> {
        self.allocation.memory().cast()
    }
}

impl<T> Drop for Moved<T> {
    fn drop(&mut self) {
        let elements = NonNull::slice_from_raw_parts(self.start(), self.count);
        // SAFETY: the elements were moved here, and nobody uses the array any more.
        unsafe { elements.drop_in_place() };
    }
}

/// Moves elements to memory of `source`, if it has some for them. Returns a pointer to the first
/// element, and what is to be dropped with the array.
pub(super) fn place<T: Send + 'static>(
    mut values: Vec<T>,
    source: Option<&dyn ArrayMemory>,
) -> (*mut u8, Box<dyn Elements>) {
    let (bytes, count) = (size_of_val(&values[..]), values.len());
    let allocation = source.filter(|_| bytes > 0).and_then(|source| source.allocate(bytes));
    let fits = |memory: NonNull<[u8]>| memory.len() >= bytes && memory.cast::<T>().is_aligned();
    let Some(allocation) = allocation.filter(|allocation| fits(allocation.memory())) else {
        prefer_huge_pages(&values);
        return (values.as_mut_ptr().cast(), Box::new(values));
    };
    let moved = Moved::<T> { allocation, count, elements: PhantomData };
    // SAFETY: the memory is long enough, aligned, and new, so that it does not overlap the vector.
    unsafe { ptr::copy_nonoverlapping(values.as_ptr(), moved.start().as_ptr(), count) };
    // SAFETY: the elements belong to `moved` from now on.
    unsafe { values.set_len(0) };
    (moved.start().as_ptr().cast(), Box::new(moved))
}
