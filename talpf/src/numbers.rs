//! Numbers of ranks, lanes, rounds and elements, as types that cannot be mixed up.

use std::fmt;
use std::ops::Range;

/// A rank of the run, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u32);

/// A lane: an independent sequence of rounds. The rounds of lane 0 are supersteps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneNumber(pub u8);

/// A round of a lane, from 0, which a sync ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Round(pub u64);

/// The number by which a rank knows a notification again that it has let land. Numbers are used
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrivalNumber(pub(crate) u32);

/// The number of a ticket, by which its put announces itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TicketNumber(pub(crate) u32);

/// Number of every slot of `register_local`, which no peer refers to.
pub(crate) const LOCAL_SLOT: u32 = u32::MAX;

/// Elements of a slot, by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Elements {
    /// Consecutive elements; those of a matrix are counted row after row.
    Consecutive(Range<u64>),
    /// A rectangle of a matrix.
    Rectangle {
        /// Numbers of the rows.
        rows: Range<u64>,
        /// Numbers of the columns.
        cols: Range<u64>,
    },
}

impl fmt::Display for Elements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elements::Consecutive(elements) => write!(f, "elements {elements:?}"),
            Elements::Rectangle { rows, cols } => write!(f, "rows {rows:?}, columns {cols:?}"),
        }
    }
}

impl Rank {
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<u32> for Rank {
    #[inline]
    fn from(number: u32) -> Self {
        Rank(number)
    }
}

impl From<Rank> for u32 {
    #[inline]
    fn from(rank: Rank) -> Self {
        rank.0
    }
}

impl LaneNumber {
    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.0)
    }
}

impl fmt::Display for LaneNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lane {}", self.0)
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "round {}", self.0)
    }
}
