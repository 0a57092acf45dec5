//! The memory of a queue at its receiver: a ring for each sender, side by side in one array.
#![allow(unsafe_code, reason = "reads and writes items that credits give the right to")]

use bytemuck::Pod;
use talpf_runtime::Array;

use super::counts::{ReceiveCounts, Room};

/// The rings of the senders. No task has a guard of the array: of each ring its sender writes the
/// elements that are free, and the receiver reads those that have come.
pub(super) struct Rings<T> {
    array: Array<T>,
    capacity: usize,
}

impl<T: Pod + Send + Sync> Rings<T> {
    /// Makes the rings of an array of `senders x capacity` elements.
    pub(super) fn new(array: Array<T>, capacity: u32) -> Self {
        Rings { array, capacity: capacity as usize }
    }

    /// Returns the first element of the ring of a sender from element `at` on.
    ///
    /// **Panics**: no such sender or element.
    #[inline]
    fn element(&self, sender: usize, at: usize) -> *mut T {
        let index = sender * self.capacity + at;
        assert!(at < self.capacity && index < self.array.len(), "element {at} of ring {sender}");
        // SAFETY: the array has so many elements, as tested above.
        unsafe { self.array.as_mut_ptr().add(index) }
    }

    /// Takes the next item of a sender that has come, by the counts of that sender.
    #[inline]
    pub(super) fn take(&self, sender: usize, counts: &mut ReceiveCounts) -> Option<T> {
        let element = self.element(sender, counts.take()?);
        // SAFETY: any bytes are an item. The signal that `ReceiveCounts::take_in` has counted came
        // after the bytes of this one, and its sender writes there again only once it has the credit
        // for it, which `due_credit` gives after this. Nobody else has the array.
        Some(unsafe { element.read() })
    }

    /// Writes items of a sender of this process, as many as there is room for.
    ///
    /// **Panics**: other than so many items.
    #[inline]
    pub(super) fn write(&self, sender: usize, room: &Room, items: &[T]) {
        assert_eq!(items.len(), room.items(), "items for the room");
        let first = self.element(sender, room.at());
        // SAFETY: the elements of a `Room` are within one ring, and their sender has credit for them:
        // the receiver has read what was there before, and reads them again after the signal that
        // follows this. Nobody else has the array, of which `items` is no part.
        unsafe { first.copy_from_nonoverlapping(items.as_ptr(), items.len()) };
    }
}
