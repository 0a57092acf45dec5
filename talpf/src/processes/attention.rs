//! Work of a pass for remote peers that no message brings.
//!
//! A pass comes often, and there may be many peers, so it asks all of them only if the flag is set. Whoever leaves
//! something to the next pass sets it afterwards; a pass takes the flag back before it asks, and sets it again if it leaves
//! something.

use talpf_primitives::{AtomicBool, Ordering};

/// Flags of all remote peers of a process.
#[derive(Default)]
pub(crate) struct Attention {
    needed: AtomicBool,
    /// Set once a peer has finished.
    has_finished: AtomicBool,
}

impl Attention {
    /// Leaves something to the next pass.
    pub(super) fn need(&self) {
        self.needed.store(true, Ordering::Release);
    }

    /// Returns `true` if something is left to the next pass.
    #[inline]
    pub(super) fn is_needed(&self) -> bool {
        self.needed.load(Ordering::Acquire)
    }

    /// Takes the flag back, for a pass that asks all peers. Returns `true` if it was set.
    #[inline]
    pub(super) fn take(&self) -> bool {
        self.is_needed() && self.needed.swap(false, Ordering::AcqRel)
    }

    /// Notes that a peer has finished.
    pub(super) fn note_finished(&self) {
        self.has_finished.store(true, Ordering::Release);
    }

    /// Returns `true` if a peer has finished.
    #[inline]
    pub(super) fn has_finished(&self) -> bool {
        self.has_finished.load(Ordering::Acquire)
    }
}
