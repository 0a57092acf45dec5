//! Access rights of memory regions and queue pairs.

use std::ops::BitOr;

/// A set of access rights. Local reading is always allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access(u8);

impl Access {
    /// Local reading only.
    pub const NONE: Self = Self(0);
    /// The device may write on behalf of its owner: receives, and results of READ and atomics.
    pub const LOCAL_WRITE: Self = Self(1);
    /// Peers may WRITE. Needs `LOCAL_WRITE`.
    pub const REMOTE_WRITE: Self = Self(2);
    /// Peers may READ.
    pub const REMOTE_READ: Self = Self(4);
    /// Peers may FETCH_ADD and CMP_SWAP. Needs `LOCAL_WRITE`.
    pub const REMOTE_ATOMIC: Self = Self(8);
    /// Every right.
    pub const ALL: Self = Self(15);

    /// Returns `true` if this set contains every right of `other`.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns `true` if a region may have exactly these rights: remote writes and atomics need
    /// `LOCAL_WRITE`.
    pub(crate) const fn is_consistent(self) -> bool {
        self.contains(Self::LOCAL_WRITE)
            || self.0 & (Self::REMOTE_WRITE.0 | Self::REMOTE_ATOMIC.0) == 0
    }

    #[inline]
    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    #[inline]
    pub(crate) const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }
}

impl BitOr for Access {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
