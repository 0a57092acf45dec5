//! Changes of a word in one atomic access, which the atomic operations make.

use std::sync::atomic::{AtomicU64 as Word, Ordering};

use crate::{Operation, RemoteAddress};

/// Change of a word of memory, by the processor that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordUpdate {
    /// Adds, wrapping.
    FetchAdd {
        /// The addend.
        add: u64,
    },
    /// Replaces the word if it is `compare`.
    CompareSwap {
        /// The expected value.
        compare: u64,
        /// The new value.
        swap: u64,
    },
}

impl WordUpdate {
    /// Returns the word and the change of an atomic operation.
    pub(crate) const fn of(operation: &Operation) -> Option<(RemoteAddress, Self)> {
        match *operation {
            Operation::FetchAdd { remote, add } => Some((remote, Self::FetchAdd { add })),
            Operation::CompareSwap { remote, compare, swap } => {
                Some((remote, Self::CompareSwap { compare, swap }))
            }
            _ => None,
        }
    }

    /// Returns the atomic operation that makes the change to a word of a peer.
    #[inline]
    pub const fn operation(self, remote: RemoteAddress) -> Operation {
        match self {
            Self::FetchAdd { add } => Operation::FetchAdd { remote, add },
            Self::CompareSwap { compare, swap } => Operation::CompareSwap { remote, compare, swap },
        }
    }

    /// Changes a word, and returns its value before.
    pub(crate) fn apply(self, word: &Word) -> u64 {
        match self {
            Self::FetchAdd { add } => word.fetch_add(add, Ordering::AcqRel),
            Self::CompareSwap { compare, swap } => word
                .compare_exchange(compare, swap, Ordering::AcqRel, Ordering::Acquire)
                .unwrap_or_else(|seen| seen),
        }
    }
}
