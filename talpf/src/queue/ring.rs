//! The memory of a queue at its receiver: a ring for each sender, side by side in one array.
#![allow(unsafe_code, reason = "reads items that peers have written")]

use bytemuck::Pod;
use talpf_runtime::Array;

use super::counts::ReceiveCounts;

/// The rings of the senders, with their counts. No task has a guard of the array: of each ring peers
/// write the elements that are free, and the receiver reads those that have come.
pub(super) struct Rings<T> {
    array: Array<T>,
    capacity: usize,
    counts: Vec<ReceiveCounts>,
}

impl<T: Pod + Send + Sync> Rings<T> {
    /// Makes the rings of an array of `senders x capacity` elements.
    pub(super) fn new(array: Array<T>, capacity: u32) -> Self {
        let counts = vec![ReceiveCounts::new(capacity); array.len() / capacity as usize];
        Rings { array, capacity: capacity as usize, counts }
    }

    /// Returns the counts of a sender, by its place among the senders.
    pub(super) fn of(&mut self, sender: usize) -> &mut ReceiveCounts {
        &mut self.counts[sender]
    }

    /// Takes the next item of a sender that has come.
    #[inline]
    pub(super) fn take(&mut self, sender: usize) -> Option<T> {
        let at = sender * self.capacity + self.counts[sender].take()?;
        // SAFETY: the array has a ring for each of the counts.
        let element = unsafe { self.array.as_mut_ptr().add(at) };
        // SAFETY: any bytes are an item. The notification that `ReceiveCounts::add` has counted came
        // after the bytes of this one, and its sender writes there again only once it has the credit
        // for it, which `due_credit` gives after this. Nobody else has the array.
        Some(unsafe { element.read() })
    }
}
