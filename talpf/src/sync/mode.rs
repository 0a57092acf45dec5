//! The modes of a sync.

use std::fmt;

use talpf_traces::{SyncArrivals, SyncModifier};

/// Where a sync learns how many operations of its round will arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// The ranks tell each other, in every round, together with a vote on whether one has failed.
    Default,
    /// The ranks tell each other in the first round and repeat that pattern from then on. A sync
    /// with `Default` on the same lane forgets the pattern.
    Cached,
    /// The program says so.
    Msg(u32),
}

/// What a sync waits for besides its arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modifier {
    /// Nothing.
    None,
    /// All ranks have the arrivals of this round.
    Barrier,
    /// The targets of this rank's previous round have ended that round. For raw slots, where
    /// nothing else keeps a fast rank from overwriting what a slow one still reads.
    Ack,
}

/// How a round ends.
///
/// **Source**: thesis, chapters 5.1.2 and 5.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncMode {
    /// Where the number of arrivals comes from.
    pub arrivals: Arrivals,
    /// What else it waits for.
    pub modifier: Modifier,
}

impl SyncMode {
    /// Counts exchanged in every round, and a barrier.
    pub const DEFAULT: Self = SyncMode { arrivals: Arrivals::Default, modifier: Modifier::Barrier };
    /// Counts exchanged once; no other traffic.
    pub const CACHED: Self = SyncMode { arrivals: Arrivals::Cached, modifier: Modifier::None };

    /// `arrivals` operations arrive; no other traffic.
    pub const fn msg(arrivals: u32) -> Self {
        SyncMode { arrivals: Arrivals::Msg(arrivals), modifier: Modifier::None }
    }

    /// The same, and all ranks have passed.
    pub const fn with_barrier(self) -> Self {
        SyncMode { modifier: Modifier::Barrier, ..self }
    }

    /// The same, and the targets have ended the round before.
    pub const fn with_ack(self) -> Self {
        SyncMode { modifier: Modifier::Ack, ..self }
    }

    pub(crate) fn traced(self) -> talpf_traces::SyncMode {
        let arrivals = match self.arrivals {
            Arrivals::Default => SyncArrivals::Default,
            Arrivals::Cached => SyncArrivals::Cached,
            Arrivals::Msg(_) => SyncArrivals::Msg,
        };
        let modifier = match self.modifier {
            Modifier::None => SyncModifier::None,
            Modifier::Barrier => SyncModifier::Barrier,
            Modifier::Ack => SyncModifier::Ack,
        };
        talpf_traces::SyncMode { arrivals, modifier }
    }
}

impl fmt::Display for SyncMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.arrivals {
            Arrivals::Default => f.write_str("default")?,
            Arrivals::Cached => f.write_str("cached")?,
            Arrivals::Msg(arrivals) => write!(f, "msg({arrivals})")?,
        }
        match (self.arrivals, self.modifier) {
            (_, Modifier::None) | (Arrivals::Default, Modifier::Barrier) => Ok(()),
            (_, Modifier::Barrier) => f.write_str("+barrier"),
            (_, Modifier::Ack) => f.write_str("+ack"),
        }
    }
}
