//! Communication between the ranks of a program.

use talpf::SyncMode;

/// Communication of a variant with ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Communication {
    /// Puts and gets, in rounds.
    OneSided(Protocol),
    /// Messages.
    TwoSided(Waiting),
}

/// Transfer of data in rounds, and the end of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Protocol {
    pub(crate) transfer: Transfer,
    /// Mode of every sync; each rank fills in its number of arrivals under `Msg`.
    pub(crate) mode: SyncMode,
    /// `true` if puts are queued until all tasks of a superstep have ended, and a sync of all slots
    /// follows: plain BSP, as in LPF.
    pub(crate) is_queued: bool,
    /// `true` if puts notify their targets, which wait for each by itself: there are no rounds.
    pub(crate) is_notified: bool,
}

/// Direction of one-sided transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// The rank that has the data puts it into a window of the other rank.
    Put,
    /// The rank that needs the data gets it from an exposed region of the other rank.
    Get,
}

/// Method by which a task waits for its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// The body ends; the task completes, and its regions are released, with the message.
    Bound,
    /// The body is suspended until the message is complete.
    Suspended,
}

/// Number of peers that a rank exchanges messages with: its neighbours, and those of collectives.
const PEERS: u32 = 16;

impl Communication {
    /// Estimates the bytes of the connections between `ranks` ranks of one process.
    pub(crate) fn connections_bytes(self, ranks: u32) -> u64 {
        match self {
            Self::OneSided(_) => {
                let config = talpf::Config { ranks, ..talpf::Config::default() };
                config.connections_bytes(PEERS)
            }
            Self::TwoSided(_) => {
                let config = tampi_shim::Config { ranks, ..tampi_shim::Config::default() };
                config.connections_bytes(PEERS)
            }
        }
    }

    pub(crate) const fn put(mode: SyncMode) -> Self {
        Self::in_rounds(Transfer::Put, mode)
    }

    pub(crate) const fn get(mode: SyncMode) -> Self {
        Self::in_rounds(Transfer::Get, mode)
    }

    pub(crate) const fn queued_put() -> Self {
        let (transfer, mode) = (Transfer::Put, SyncMode::DEFAULT);
        Self::OneSided(Protocol { transfer, mode, is_queued: true, is_notified: false })
    }

    pub(crate) const fn notified_put() -> Self {
        let (transfer, mode) = (Transfer::Put, SyncMode::DEFAULT);
        Self::OneSided(Protocol { transfer, mode, is_queued: false, is_notified: true })
    }

    const fn in_rounds(transfer: Transfer, mode: SyncMode) -> Self {
        Self::OneSided(Protocol { transfer, mode, is_queued: false, is_notified: false })
    }
}
