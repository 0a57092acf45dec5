//! Scatter: a block of one rank's elements at each rank.

use bytemuck::Pod;
use talpf_runtime::Region;

use super::member::Member;
use crate::all_gather::Call;
use crate::context::Context;
use crate::error::Error;
use crate::lane::Lane;
use crate::numbers::Rank;
use crate::one_sided::OneSided;

/// A scatter: each rank gets its block of the elements of the root.
#[derive(Debug)]
pub struct Scatter<T: Pod + Send + Sync> {
    member: Member<T>,
    root: usize,
}

impl<T: Pod + Send + Sync> Scatter<T> {
    /// Makes a scatter of `len` elements for each rank from `root`. Collective: every rank gives
    /// the same arguments.
    ///
    /// **Errors**: as [`Allreduce::new`](crate::Allreduce::new); a root that does not exist.
    pub async fn new(context: &Context, lane: Lane, len: usize, root: Rank) -> Result<Self, Error> {
        let member = Member::rooted(context, Call::Scatter, lane, len, root).await?;
        Ok(Scatter { member, root: root.index() })
    }

    /// Declares a run, which reads `all` of the root and writes `piece`. Other ranks do not use
    /// `all` and may pass none.
    ///
    /// **Completion**, **Errors**: as [`Allreduce::run`](crate::Allreduce::run); no `all` at the
    /// root.
    pub fn run<'r>(
        &'r self,
        scope: &impl OneSided<'r>,
        all: Option<&Region<'r, T>>,
        piece: &Region<'r, T>,
    ) -> Result<(), Error> {
        let member = &self.member;
        let Member { rank, ranks, len, .. } = *member;
        member.check_length("piece", piece, len)?;
        if rank != self.root {
            if len > 0 {
                let scope = &member.scope(scope)?;
                member.end_round(scope, 1, 0..len)?;
                member.copy(scope, &member.part(0..len), piece)?;
            }
            return Ok(());
        }
        let all = member.check_present("all", all, ranks * len)?;
        if len > 0 {
            let scope = &member.scope(scope)?;
            member.copy(scope, all, &member.part(0..ranks * len))?;
            for to in member.others() {
                member.put(scope, to * len..(to + 1) * len, (to, 0))?;
            }
            member.end_round(scope, 0, 0..0)?;
            member.copy(scope, &member.part(rank * len..(rank + 1) * len), piece)?;
        }
        Ok(())
    }
}
