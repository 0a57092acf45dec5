//! Ranks: numbers of the members of a communicator.

use std::fmt;

/// Number of a member of a communicator, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u32);

/// Number of a rank in the world, independent of the communicators it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WorldRank(pub(crate) u32);

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

impl WorldRank {
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.0)
    }
}
