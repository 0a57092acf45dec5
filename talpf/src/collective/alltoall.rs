//! All-to-all: a block of each rank's elements at each rank.

use bytemuck::Pod;
use talpf_runtime::Region;

use super::member::Member;
use crate::all_gather::Call;
use crate::context::Context;
use crate::error::Error;
use crate::lane::Lane;
use crate::one_sided::OneSided;

/// An exchange of blocks: each rank gets its block of the elements of every rank.
#[derive(Debug)]
pub struct Alltoall<T: Pod + Send + Sync> {
    member: Member<T>,
}

impl<T: Pod + Send + Sync> Alltoall<T> {
    /// Makes an exchange of blocks of `len` elements, one from each rank to each rank. Collective:
    /// every rank gives the same arguments.
    ///
    /// **Errors**: as [`Allreduce::new`](crate::Allreduce::new).
    pub async fn new(context: &Context, lane: Lane, len: usize) -> Result<Self, Error> {
        let elements = |ranks| 2 * ranks * len;
        let member = Member::new(context, Call::Alltoall, (lane, len, None), elements).await?;
        Ok(Alltoall { member })
    }

    /// Declares a run, which reads `sent` and writes `received`, each as many blocks as there are
    /// ranks, in the order of the ranks.
    ///
    /// **Completion**, **Errors**: as [`Allreduce::run`](crate::Allreduce::run).
    pub fn run<'r>(
        &'r self,
        scope: &impl OneSided<'r>,
        sent: &Region<'r, T>,
        received: &Region<'r, T>,
    ) -> Result<(), Error> {
        let member = &self.member;
        let Member { rank, ranks, len, .. } = *member;
        let total = ranks * len;
        member.check_length("sent", sent, total)?;
        member.check_length("received", received, total)?;
        if len == 0 {
            return Ok(());
        }
        let block = move |rank: usize| rank * len..(rank + 1) * len;
        let scope = &member.scope(scope)?;
        member.copy(scope, sent, &member.part(0..total))?;
        for to in member.others() {
            member.put(scope, block(to), (to, total + rank * len))?;
        }
        member.end_round(scope, ranks - 1, total..2 * total)?;
        let (own, landed) = (member.part(block(rank)), member.part(total..2 * total));
        let task = member.task(scope, "copy", total).input(&own).input(&landed).output(received);
        Ok(task.spawn(move |own, landed, mut received| {
            received.copy_from_slice(&landed);
            received[block(rank)].copy_from_slice(&own);
        })?)
    }
}
