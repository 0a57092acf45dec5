//! Context of a rank's program for both kinds of communication.

use std::time::Duration;

use talpf::{MemorySlot, Registrable, SyncMode};
use talpf_runtime::Group;

use super::{Messages, Protocol};
use crate::Error;

/// Context of one rank of a run. Clones are handles of the same rank.
#[derive(Clone)]
pub(crate) enum RankContext {
    OneSided(talpf::Context, Protocol),
    TwoSided(Messages),
}

impl RankContext {
    /// Returns the group of this rank's tasks.
    pub(crate) fn group(&self) -> &Group {
        match self {
            Self::OneSided(ctx, _) => ctx.group(),
            Self::TwoSided(messages) => messages.group(),
        }
    }

    /// Returns the time on the clock of the runtime.
    pub(crate) fn now(&self) -> Duration {
        self.group().clock().now()
    }

    pub(crate) fn rank(&self) -> usize {
        match self {
            Self::OneSided(ctx, _) => ctx.rank().0 as usize,
            Self::TwoSided(messages) => messages.rank(),
        }
    }

    pub(crate) fn size(&self) -> usize {
        match self {
            Self::OneSided(ctx, _) => ctx.size() as usize,
            Self::TwoSided(messages) => messages.size(),
        }
    }

    /// Returns `true` if puts are queued until all tasks of a superstep have ended.
    pub(crate) fn is_plain_bsp(&self) -> bool {
        matches!(self, Self::OneSided(_, Protocol { is_queued: true, .. }))
    }

    /// Registers an array that other ranks put into or get from, if the variant is one-sided.
    /// Collective.
    pub(crate) async fn register<A: Registrable<Element = f64>>(
        &self,
        array: &A,
    ) -> Result<Option<MemorySlot<f64>>, Error> {
        match self {
            Self::OneSided(ctx, _) => Ok(Some(ctx.register_global(array).await?)),
            Self::TwoSided(_) => Ok(None),
        }
    }

    /// Waits until all ranks have called it.
    pub(crate) async fn barrier(&self) -> Result<(), Error> {
        match self {
            Self::OneSided(ctx, _) => Ok(ctx.sync(SyncMode::DEFAULT).await?),
            Self::TwoSided(messages) => messages.barrier().await,
        }
    }
}
