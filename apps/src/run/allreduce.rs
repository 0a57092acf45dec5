//! Reductions over all ranks, over the communication of a variant.

use talpf::Context;
use talpf_runtime::operator::Operator;
use talpf_runtime::{Group, Region};

use super::{Messages, RankContext};
use crate::Error;

/// Reduction of some numbers of each rank to those of all.
pub(crate) enum Allreduce<O: Operator<f64>> {
    OneSided(Context, talpf::Allreduce<f64, O>),
    Messages(Messages),
}

impl<O: Operator<f64>> Allreduce<O> {
    /// Prepares the reduction of `len` numbers, whose rounds, if it has any, are those of a lane.
    /// Collective.
    pub(crate) async fn new(
        ctx: &RankContext,
        lane: u8,
        len: usize,
        operator: O,
    ) -> Result<Self, Error> {
        match ctx {
            RankContext::OneSided(ctx, _) => {
                let allreduce = talpf::Allreduce::new(ctx, ctx.lane(lane)?, len, operator).await?;
                Ok(Self::OneSided(ctx.clone(), allreduce))
            }
            RankContext::TwoSided(messages) => Ok(Self::Messages(messages.clone())),
        }
    }

    /// Spawns the tasks that replace `numbers` by those of all ranks.
    pub(crate) fn spawn(&self, group: &Group, numbers: &Region<'_, f64>) -> Result<(), Error> {
        match self {
            Self::OneSided(ctx, allreduce) => Ok(allreduce.run(ctx, numbers, numbers)?),
            Self::Messages(messages) => messages.declare_allreduce::<O>(group, numbers),
        }
    }
}
