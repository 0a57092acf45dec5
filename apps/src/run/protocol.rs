//! How data travels between ranks, and how rounds end.

use talpf::SyncMode;

/// All that tells one `talpf-*` variant of an application from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Protocol {
    pub(crate) transfer: Transfer,
    /// The number of arrivals under `Msg` is filled in by each rank.
    pub(crate) mode: SyncMode,
}

/// Who moves data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// The rank that has it, into a window of the other.
    Put,
    /// The rank that needs it, from what the other exposes.
    Get,
}

impl Protocol {
    pub(crate) const fn put(mode: SyncMode) -> Self {
        Self { transfer: Transfer::Put, mode }
    }

    pub(crate) const fn get(mode: SyncMode) -> Self {
        Self { transfer: Transfer::Get, mode }
    }
}
