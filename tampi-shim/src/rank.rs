//! Ranks.

use std::fmt;

/// A rank of a communicator, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u32);

/// A rank of the world, whatever it is called in a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WorldRank(pub(crate) u32);

impl Rank {
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
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
