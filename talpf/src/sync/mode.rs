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

/// The conditions under which a round ends at a rank: its own operations are posted, as many
/// operations of peers have arrived as are expected, and with a barrier or acknowledgements more.
///
/// All ranks give a round the same mode, but each its own number in [`SyncMode::msg`].
///
/// **Cost**: messages besides the operations, by mode; what they take is measured by
/// `talpf-bench micro sync.`:
///
/// | mode | messages of a rank |
/// |---|---|
/// | [`DEFAULT`](SyncMode::DEFAULT) | a count to every rank that it has put to and has not met in the barrier; the barrier |
/// | [`CACHED`](SyncMode::CACHED) | as `DEFAULT` in the first round, then none |
/// | [`msg`](SyncMode::msg) | none |
/// | [`with_barrier`](SyncMode::with_barrier) | about the logarithm of the number of ranks, more |
/// | [`with_ack`](SyncMode::with_ack) | one to every rank that has sent something in the round, more |
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
    /// Ranks exchange the numbers of their operations in every round, and a barrier ends it: for
    /// rounds that differ.
    pub const DEFAULT: Self = SyncMode { arrivals: Arrivals::Default, barrier: true, ack: false };
    /// Ranks exchange the numbers of their operations in the first round of the lane, and repeat
    /// them without a message: for rounds that are alike.
    pub const CACHED: Self = SyncMode { arrivals: Arrivals::Cached, barrier: false, ack: false };

    /// Returns the mode of a round in which `arrivals` operations of peers arrive at this rank, as
    /// the program knows. A put, a get and an atomic each count once, however long they are.
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

    /// Returns the same mode with a barrier: the round ends once all ranks have their arrivals.
    pub const fn with_barrier(self) -> Self {
        SyncMode { barrier: true, ..self }
    }

    /// Returns the same mode with acknowledgements: the round ends once the targets of this rank's
    /// round before have ended that.
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
