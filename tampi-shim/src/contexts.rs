//! Numbers for new communicators.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::Error;
use crate::rank::WorldRank;
use crate::transport::ContextId;

/// The low bits of a context, which its first member counts. The bits above are that member's
/// number in the world, so no two ranks make the same context.
const COUNTED_BITS: u32 = 20;

/// The contexts that one rank gives to the communicators whose first member it is. Each has two:
/// for point-to-point messages and for collectives.
pub(crate) struct Contexts {
    rank: WorldRank,
    next: AtomicU32,
}

impl Contexts {
    /// All but those of the world, whose first member is rank 0.
    pub(crate) fn of_rank(rank: WorldRank, world: ContextId) -> Self {
        Contexts { rank, next: AtomicU32::new(world.0 + 2) }
    }

    /// A context that was not given before.
    ///
    /// **Errors**: all have been given.
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

    /// Takes back what nobody uses, if nothing was reserved after it.
    pub(crate) fn give_back(&self, context: ContextId) {
        let counted = context.0 & ((1 << COUNTED_BITS) - 1);
        let (from, to) = (counted + 2, counted);
        let _ = self.next.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    }
}
