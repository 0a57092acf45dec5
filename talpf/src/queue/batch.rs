//! Items of a sender that are put together.

use std::ops::Range;

use bytemuck::Pod;
use talpf_runtime::ByteLayout;

use crate::operation::Source;

/// Number of bytes that are put together: as many as a put copies.
const BYTES: usize = 256;

/// Items of a sender in their order, of which the first ones were put.
#[derive(Clone, Debug)]
pub(super) struct Batch<T> {
    items: Vec<T>,
    /// The items of the put under way, or of the last one.
    part: Range<usize>,
}

/// Memory of the operation that puts a part of a batch.
impl<T: Pod + Send + Sync> Source for Batch<T> {
    type Element = T;

    #[inline]
    fn layout(&self) -> ByteLayout {
        let part = self.part();
        let (bytes, len) = (size_of_val(part), part.len());
        // Operations read their source.
        let first = part.as_ptr().cast_mut().cast();
        ByteLayout { first, rows: 1, row_bytes: bytes, stride_bytes: 0, len }
    }

    /// Returns a number that no array has.
    fn array(&self) -> u64 {
        u64::MAX
    }
}

impl<T> Batch<T> {
    /// Returns the number of items that are put together in a ring of `capacity`.
    pub(super) fn most(capacity: u32) -> usize {
        (BYTES / size_of::<T>().max(1)).clamp(1, capacity as usize)
    }

    /// Makes a batch of no items.
    pub(super) fn with_room_for(items: usize) -> Self {
        Batch { items: Vec::with_capacity(items), part: 0..0 }
    }

    /// Returns the number of items that are not put yet.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.items.len() - self.part.end
    }

    pub(super) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    /// Makes the next items the part to put.
    #[inline]
    pub(super) fn begin_put(&mut self, items: usize) {
        self.part = self.part.end..self.part.end + items;
    }

    /// Returns the part to put.
    #[inline]
    pub(super) fn part(&self) -> &[T] {
        &self.items[self.part.clone()]
    }

    /// Drops the items once all were put.
    #[inline]
    pub(super) fn end_put(&mut self) {
        if self.len() == 0 {
            self.items.clear();
            self.part = 0..0;
        }
    }

    /// Adds the items of `later`, which is empty then.
    pub(super) fn append(&mut self, later: &mut Self) {
        self.items.append(&mut later.items);
    }
}
