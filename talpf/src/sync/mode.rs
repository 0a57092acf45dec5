//! The modes of a sync.

use std::fmt;

use talpf_traces::SyncArrivals;

/// Where a sync learns how many operations of its round will arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// The ranks tell each other, in every round.
    Default,
    /// The ranks tell each other in the first round and repeat that pattern from then on. A sync
    /// with `Default` on the same lane forgets the pattern.
    Cached,
    /// The program says so.
    Msg(u32),
}

/// How a round ends.
///
/// **Source**: thesis, chapters 5.1.2 and 5.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncMode {
    /// Where the number of arrivals comes from.
    pub arrivals: Arrivals,
    /// Whether it also waits until all ranks have the arrivals of this round.
    pub barrier: bool,
    /// Whether it also waits until the targets of this rank's previous round have ended that round.
    /// For raw slots, where nothing else keeps a fast rank from overwriting what a slow one still
    /// reads.
    pub ack: bool,
}

impl SyncMode {
    /// Counts exchanged in every round, and a barrier.
    pub const DEFAULT: Self = SyncMode { arrivals: Arrivals::Default, barrier: true, ack: false };
    /// Counts exchanged once; no other traffic.
    pub const CACHED: Self = SyncMode { arrivals: Arrivals::Cached, barrier: false, ack: false };

    /// `arrivals` operations arrive; no other traffic.
    pub const fn msg(arrivals: u32) -> Self {
        SyncMode { arrivals: Arrivals::Msg(arrivals), barrier: false, ack: false }
    }

    /// The same, and all ranks have passed.
    pub const fn with_barrier(self) -> Self {
        SyncMode { barrier: true, ..self }
    }

    /// The same, and the targets have ended the round before.
    pub const fn with_ack(self) -> Self {
        SyncMode { ack: true, ..self }
    }

    pub(crate) fn traced(self) -> talpf_traces::SyncMode {
        let SyncMode { arrivals, barrier, ack } = self;
        let arrivals = match arrivals {
            Arrivals::Default => SyncArrivals::Default,
            Arrivals::Cached => SyncArrivals::Cached,
            Arrivals::Msg(_) => SyncArrivals::Msg,
        };
        talpf_traces::SyncMode { arrivals, barrier, ack }
    }
}

impl fmt::Display for SyncMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.arrivals {
            Arrivals::Default => f.write_str("default")?,
            Arrivals::Cached => f.write_str("cached")?,
            Arrivals::Msg(arrivals) => write!(f, "msg({arrivals})")?,
        }
        if self.barrier && self.arrivals != Arrivals::Default {
            f.write_str("+barrier")?;
        }
        f.write_str(if self.ack { "+ack" } else { "" })
    }
}
