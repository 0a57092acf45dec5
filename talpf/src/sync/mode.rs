//! The modes of a sync.

use std::fmt;

use talpf_traces::SyncArrivals;

/// The way in which a sync learns how many operations of its round will arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// The ranks exchange counts in every round.
    Default,
    /// The ranks exchange counts in the first round and repeat that pattern from then on. A sync
    /// with `Default` on the same lane forgets the pattern.
    Cached,
    /// The program states the number.
    Msg(u32),
}

/// The conditions under which a round ends.
///
/// **Source**: thesis, chapters 5.1.2 and 5.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncMode {
    /// Source of the number of arrivals.
    pub arrivals: Arrivals,
    /// `true` to wait until all ranks have the arrivals of this round.
    pub barrier: bool,
    /// `true` to wait until the targets of this rank's previous round have ended that round. For
    /// raw slots, where nothing else keeps a fast rank from overwriting memory that a slow one
    /// reads.
    pub ack: bool,
}

impl SyncMode {
    /// Counts exchanged in every round, and a barrier.
    pub const DEFAULT: Self = SyncMode { arrivals: Arrivals::Default, barrier: true, ack: false };
    /// Counts exchanged once; no other traffic.
    pub const CACHED: Self = SyncMode { arrivals: Arrivals::Cached, barrier: false, ack: false };

    /// Returns the mode in which `arrivals` operations arrive; no other traffic.
    pub const fn msg(arrivals: u32) -> Self {
        SyncMode { arrivals: Arrivals::Msg(arrivals), barrier: false, ack: false }
    }

    /// Returns the same mode with `arrivals` operations if the program states their number: for
    /// programs that get a mode and fill in the number at each rank.
    pub const fn expecting(self, arrivals: u32) -> Self {
        match self.arrivals {
            Arrivals::Msg(_) => SyncMode { arrivals: Arrivals::Msg(arrivals), ..self },
            Arrivals::Default | Arrivals::Cached => self,
        }
    }

    /// Returns the same mode with a barrier of all ranks.
    pub const fn with_barrier(self) -> Self {
        SyncMode { barrier: true, ..self }
    }

    /// Returns the same mode with a wait until the targets have ended the round before.
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
