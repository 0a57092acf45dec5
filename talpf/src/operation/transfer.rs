//! The remote side of an operation, and its kind.

use ibverbs_sim::{Operation as Request, RemoteAddress};

use crate::numbers::Rank;

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Put,
    Get,
    FetchAdd { add: u64 },
    CompareSwap { compare: u64, swap: u64 },
}

impl Verb {
    /// Returns the request of an operation that brings data here; `None` for a put.
    pub(super) fn bringing(self, remote: RemoteAddress) -> Option<Request> {
        match self {
            Verb::Put => None,
            Verb::Get => Some(Request::Read { remote }),
            Verb::FetchAdd { add } => Some(Request::FetchAdd { remote, add }),
            Verb::CompareSwap { compare, swap } => {
                Some(Request::CompareSwap { remote, compare, swap })
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
    /// Time of the call; 0 once recorded, or if the run is not traced.
    pub(crate) called_ns: u64,
}
