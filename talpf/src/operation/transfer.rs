//! The remote side of an operation, and its kind.

use ibverbs_sim::RemoteAddress;

use crate::numbers::Rank;

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Put,
    Get,
    FetchAdd { add: u64 },
    CompareSwap { compare: u64, swap: u64 },
}

/// The remote side of an operation.
#[derive(Clone, Copy)]
pub(crate) struct Transfer {
    pub(crate) target: Rank,
    pub(crate) remote: RemoteAddress,
    pub(crate) bytes: u64,
    /// Time of the call; 0 once recorded, or if the run is not traced.
    pub(crate) called_ns: u64,
}
