//! The context of a rank's program, whichever way the ranks communicate.

use talpf::SyncMode;
use talpf_runtime::Group;

use super::{Messages, Protocol};
use crate::Error;

/// One rank of a run. Clones are handles of the same rank.
#[derive(Clone)]
pub(crate) enum RankContext {
    OneSided(talpf::Context, Protocol),
    TwoSided(Messages),
}

impl RankContext {
    /// The tasks of this rank.
    pub(crate) fn group(&self) -> &Group {
        match self {
            Self::OneSided(ctx, _) => ctx.group(),
            Self::TwoSided(messages) => messages.group(),
        }
    }

    pub(crate) fn rank(&self) -> usize {
        match self {
            Self::OneSided(ctx, _) => ctx.rank().0 as usize,
            Self::TwoSided(messages) => messages.rank(),
        }
    }

    pub(crate) fn ranks(&self) -> usize {
        match self {
            Self::OneSided(ctx, _) => ctx.ranks() as usize,
            Self::TwoSided(messages) => messages.ranks(),
        }
    }

    /// Waits for all ranks.
    pub(crate) async fn barrier(&self) -> Result<(), Error> {
        match self {
            Self::OneSided(ctx, _) => Ok(ctx.sync(SyncMode::DEFAULT).await?),
            Self::TwoSided(messages) => messages.barrier().await,
        }
    }
}
