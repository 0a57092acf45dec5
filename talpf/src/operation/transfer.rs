//! The remote side of an operation, and its kind.

use ibverbs_sim::{Operation as Request, RemoteAddress, WordUpdate};
use talpf_primitives::prefetch_address_to_write;

use crate::numbers::Rank;
use crate::peer::Peers;
use crate::window::Claim;

/// Most bytes of a put that are fetched ahead: more would not stay in the first level of the cache.
const LONGEST_FETCHED: u64 = 4096;

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Put,
    Get,
    FetchAdd { add: u64 },
    CompareSwap { compare: u64, swap: u64 },
}

impl Verb {
    /// Returns the change that an atomic makes.
    pub(super) fn update(self) -> Option<WordUpdate> {
        match self {
            Verb::Put | Verb::Get => None,
            Verb::FetchAdd { add } => Some(WordUpdate::FetchAdd { add }),
            Verb::CompareSwap { compare, swap } => Some(WordUpdate::CompareSwap { compare, swap }),
        }
    }

    /// Returns the request of an operation that brings data here; `None` for a put.
    pub(super) fn bringing(self, remote: RemoteAddress) -> Option<Request> {
        match self {
            Verb::Put => None,
            Verb::Get => Some(Request::Read { remote }),
            Verb::FetchAdd { .. } | Verb::CompareSwap { .. } => {
                self.update().map(|update| update.operation(remote))
            }
        }
    }
}

/// The remote side of an operation.
#[derive(Clone, Copy)]
pub(crate) struct Transfer {
    pub(crate) target: Rank,
    pub(crate) remote: RemoteAddress,
    pub(crate) bytes: u64,
    /// Number of rows at the target, of equal length; 1 if all bytes are consecutive.
    pub(crate) rows: u32,
    /// Bytes from one row to the next, if there are several.
    pub(crate) stride_bytes: u64,
    /// Time of the call; 0 once recorded, or if the run is not traced.
    pub(crate) called_ns: u64,
}

impl Transfer {
    /// Returns the remote side of an operation on consecutive bytes.
    #[inline]
    pub(crate) fn consecutive(
        target: Rank,
        remote: RemoteAddress,
        bytes: u64,
        called_ns: u64,
    ) -> Self {
        Transfer { target, remote, bytes, rows: 1, stride_bytes: 0, called_ns }
    }

    #[inline]
    pub(crate) fn is_consecutive(&self) -> bool {
        self.rows == 1
    }

    /// Has the memory that a put is about to write brought to this core, while the put is checked. The
    /// thread would wait for it otherwise, with its first atomic operation after the copy.
    #[inline]
    pub(super) fn prefetch(&self, peers: &Peers) {
        if self.is_consecutive() && peers.shares_memory_with(self.target) {
            prefetch_address_to_write(self.remote.address, self.bytes.min(LONGEST_FETCHED));
        }
    }

    /// Returns the number of bytes of each row.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.bytes / u64::from(self.rows)
    }
}

/// The way of an operation into the memory of its target. A batch has one for all its puts, without
/// their claims.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route<C = Claim> {
    /// Through a window of its round, which covers the claim.
    Window(C),
    /// Without a window: to a raw slot, or to a buffer of which the target holds a guard.
    Direct,
}
