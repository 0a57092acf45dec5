//! Numbers of queue pairs.

use std::fmt;

use crate::slab::INDEX_BITS;

/// A number by which peers name a queue pair. It may be sent as a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueuePairNumber(pub(crate) u32);

impl QueuePairNumber {
    /// Returns the number to send to a peer.
    pub const fn to_u32(self) -> u32 {
        self.0
    }

    /// Returns the part of the number that is below the `max_qp` of the device. No two queue pairs
    /// that a device has at one time have the same, so it may be the index of a table.
    #[inline]
    pub const fn index(self) -> u32 {
        self.0 & ((1 << INDEX_BITS) - 1)
    }

    /// Makes a queue pair number of a number that a peer has sent.
    pub const fn from_u32(number: u32) -> Self {
        Self(number)
    }
}

impl fmt::Display for QueuePairNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue pair {:#x}", self.0)
    }
}
