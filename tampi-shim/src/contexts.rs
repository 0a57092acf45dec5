//! Allocation of context ids for new communicators.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::Error;
use crate::rank::WorldRank;
use crate::transport::ContextId;

/// Number of low bits of a context id that its creator counts up. The bits above are the creator's
/// rank in the world, so no two ranks create the same context id.
const COUNTED_BITS: u32 = 20;

/// Allocator of the context ids of communicators whose first member is this rank. Each communicator
/// has two: for point-to-point messages and for collectives.
pub(crate) struct Contexts {
    rank: WorldRank,
    next: AtomicU32,
}

impl Contexts {
    /// Creates the allocator of `rank`. The two context ids of the world stay reserved.
    pub(crate) fn of_rank(rank: WorldRank, world: ContextId) -> Self {
        Contexts { rank, next: AtomicU32::new(world.0 + 2) }
    }

    /// Allocates a pair of context ids and returns the first.
    ///
    /// **Errors**: all context ids are allocated.
    pub(crate) fn reserve(&self) -> Result<ContextId, Error> {
        let limit = 1 << COUNTED_BITS;
        let advance = |next| (next < limit).then_some(next + 2);
        let counted = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, advance);
        let fits = self.rank.0 < 1 << (u32::BITS - COUNTED_BITS);
        let Some(counted) = counted.ok().filter(|_| fits) else {
            let what = "communicators made by a rank";
            return Err(Error::Limit { what, value: limit.into(), limit: limit.into() });
        };
        Ok(ContextId(self.rank.0 << COUNTED_BITS | counted))
    }

    /// Frees an unused pair of context ids, if none was allocated after it.
    pub(crate) fn free(&self, context: ContextId) {
        let counted = context.0 & ((1 << COUNTED_BITS) - 1);
        let (from, to) = (counted + 2, counted);
        let _ = self.next.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    }
}
