//! How the ranks of a program communicate.

use talpf::SyncMode;

/// All that tells one variant of an application with ranks from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Communication {
    /// Puts and gets, in rounds.
    OneSided(Protocol),
    /// Messages.
    TwoSided(Waiting),
}

/// How data travels in rounds, and how they end.
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

/// How a task waits for its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Its body ends; the task is complete, and its regions are released, with the message.
    Bound,
    /// Its body is suspended.
    Suspended,
}

/// Peers that a rank exchanges messages with: its neighbours, and those of the collectives.
const PEERS: u32 = 16;

impl Communication {
    /// Bytes of what connects so many ranks of one process, about.
    pub(crate) fn connections_bytes(self, ranks: u32) -> u64 {
        match self {
            Self::OneSided(_) => {
                talpf::Config { ranks, ..talpf::Config::default() }.connections_bytes()
            }
            Self::TwoSided(_) => {
                let config = tampi_shim::Config { ranks, ..tampi_shim::Config::default() };
                config.connections_bytes(PEERS)
            }
        }
    }

    pub(crate) const fn put(mode: SyncMode) -> Self {
        Self::OneSided(Protocol { transfer: Transfer::Put, mode })
    }

    pub(crate) const fn get(mode: SyncMode) -> Self {
        Self::OneSided(Protocol { transfer: Transfer::Get, mode })
    }
}
