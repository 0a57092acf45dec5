//! Gather: the elements of all ranks at one rank, or at all ranks.

use bytemuck::Pod;
use talpf_runtime::Region;

use super::member::Member;
use crate::all_gather::Call;
use crate::context::Context;
use crate::error::Error;
use crate::lane::Lane;
use crate::numbers::Rank;
use crate::one_sided::OneSided;

/// A gather: the root gets the elements of all ranks, in the order of the ranks.
#[derive(Debug)]
pub struct Gather<T: Pod + Send + Sync> {
    member: Member<T>,
    root: usize,
}

impl<T: Pod + Send + Sync> Gather<T> {
    /// Makes a gather of `len` elements of each rank at `root`. Collective: every rank gives the
    /// same arguments.
    ///
    /// **Errors**: as [`Allreduce::new`](crate::Allreduce::new); a root that does not exist.
    pub async fn new(context: &Context, lane: Lane, len: usize, root: Rank) -> Result<Self, Error> {
        let member = Member::rooted(context, Call::Gather, lane, len, root).await?;
        Ok(Gather { member, root: root.index() })
    }

    /// Declares a run, which reads `piece` and writes `all` of the root. Other ranks do not use
    /// `all` and may pass none.
    ///
    /// **Completion**, **Errors**: as [`Allreduce::run`](crate::Allreduce::run); no `all` at the
    /// root.
    pub fn run<'r>(
        &'r self,
        scope: &impl OneSided<'r>,
        piece: &Region<'r, T>,
        all: Option<&Region<'r, T>>,
    ) -> Result<(), Error> {
        let member = &self.member;
        let Member { rank, ranks, len, .. } = *member;
        member.check_length("piece", piece, len)?;
        if rank != self.root {
            if len > 0 {
                let scope = &member.scope(scope)?;
                member.copy(scope, piece, &member.part(0..len))?;
                member.put(scope, 0..len, (self.root, rank * len))?;
                member.end_round(scope, 0, 0..0)?;
            }
            return Ok(());
        }
        let all = member.check_present("all", all, ranks * len)?;
        if len > 0 {
            let scope = &member.scope(scope)?;
            member.copy(scope, piece, &member.part(rank * len..(rank + 1) * len))?;
            member.end_round(scope, ranks - 1, 0..ranks * len)?;
            member.copy(scope, &member.part(0..ranks * len), all)?;
        }
        Ok(())
    }
}

/// A gather at all ranks: each rank gets the elements of all, in the order of the ranks.
#[derive(Debug)]
pub struct Allgather<T: Pod + Send + Sync> {
    member: Member<T>,
}

impl<T: Pod + Send + Sync> Allgather<T> {
    /// Makes a gather of `len` elements of each rank at all ranks. Collective: every rank gives the
    /// same arguments.
    ///
    /// **Errors**: as [`Allreduce::new`](crate::Allreduce::new).
    pub async fn new(context: &Context, lane: Lane, len: usize) -> Result<Self, Error> {
        let elements = |ranks| ranks * len;
        let member = Member::new(context, Call::Allgather, (lane, len, None), elements).await?;
        Ok(Allgather { member })
    }

    /// Declares a run, which reads `piece` and writes `all`, as many times as long as there are
    /// ranks.
    ///
    /// **Completion**, **Errors**: as [`Allreduce::run`](crate::Allreduce::run).
    pub fn run<'r>(
        &'r self,
        scope: &impl OneSided<'r>,
        piece: &Region<'r, T>,
        all: &Region<'r, T>,
    ) -> Result<(), Error> {
        let member = &self.member;
        let Member { rank, ranks, len, .. } = *member;
        let total = ranks * len;
        member.check_length("piece", piece, len)?;
        member.check_length("all", all, total)?;
        if len == 0 {
            return Ok(());
        }
        let scope = &member.scope(scope)?;
        member.copy(scope, piece, &member.part(0..len))?;
        member.gather_blocks(scope, len)?;
        let array = member.part(0..total);
        let task = member.task(scope, "copy", total).input(&array).output(all);
        Ok(task.spawn(move |array, mut all| {
            let (from_here, from_first) = array.split_at(total - rank * len);
            all[rank * len..].copy_from_slice(from_here);
            all[..rank * len].copy_from_slice(from_first);
        })?)
    }
}
