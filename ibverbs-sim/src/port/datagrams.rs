//! The datagrams of a poll.

use std::ops::Range;

/// Memory that is kept from one poll to the next.
const KEPT_BYTES: usize = 1 << 20;

/// Datagrams that have arrived, in order, which the thread that polls passes on.
#[derive(Default)]
pub(super) struct Datagrams {
    bytes: Vec<u8>,
    /// Of each, the process that has sent it, and the range of its bytes.
    each: Vec<(u32, Range<usize>)>,
}

impl Datagrams {
    pub(super) fn push(&mut self, from: u32, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.each.push((from, start..self.bytes.len()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    /// Passes all datagrams to `sink`, and keeps none.
    pub(super) fn pass_on(&mut self, sink: &mut dyn FnMut(u32, &[u8])) {
        for (from, range) in self.each.drain(..) {
            sink(from, &self.bytes[range]);
        }
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
    }
}
