//! Largest number of all ranks, over the communication of a variant.

use talpf::Context;
use talpf_runtime::operator::Max;
use talpf_runtime::{Group, Region};

use super::{Messages, RankContext};
use crate::Error;

/// Reduction of a number of each rank to the largest of them.
pub(crate) enum Allreduce {
    OneSided(Context, talpf::Allreduce<f64, Max>),
    Messages(Messages),
}

impl Allreduce {
    /// Prepares the reduction, whose rounds, if it has any, are those of a lane. Collective.
    pub(crate) async fn new(ctx: &RankContext, lane: u8) -> Result<Self, Error> {
        match ctx {
            RankContext::OneSided(ctx, _) => {
                let allreduce = talpf::Allreduce::new(ctx, ctx.lane(lane)?, 1, Max).await?;
                Ok(Self::OneSided(ctx.clone(), allreduce))
            }
            RankContext::TwoSided(messages) => Ok(Self::Messages(messages.clone())),
        }
    }

    /// Spawns the tasks that replace `number` by the largest one of all ranks.
    pub(crate) fn spawn(&self, group: &Group, number: &Region<'_, f64>) -> Result<(), Error> {
        match self {
            Self::OneSided(ctx, allreduce) => Ok(allreduce.run(ctx, number, number)?),
            Self::Messages(messages) => messages.declare_allreduce(group, number),
        }
    }
}
