//! Broadcast: one rank's elements at all ranks.

use bytemuck::Pod;
use talpf_runtime::Region;

use super::LONG;
use super::member::Member;
use crate::all_gather::Call;
use crate::context::Context;
use crate::error::Error;
use crate::lane::Lane;
use crate::numbers::Rank;
use crate::one_sided::OneSided;

/// A broadcast: all ranks get the elements of the root.
#[derive(Debug)]
pub struct Broadcast<T: Pod + Send + Sync> {
    member: Member<T>,
    root: usize,
    /// Number of elements of a block, if each rank passes a block of its own on.
    block: Option<usize>,
}

impl<T: Pod + Send + Sync> Broadcast<T> {
    /// Makes a broadcast of `len` elements of `root`. Collective: every rank gives the same
    /// arguments.
    ///
    /// **Errors**: as [`Allreduce::new`](crate::Allreduce::new); a root that does not exist.
    pub async fn new(context: &Context, lane: Lane, len: usize, root: Rank) -> Result<Self, Error> {
        let ranks = context.size() as usize;
        let is_long = len * size_of::<T>() > LONG && len >= ranks && ranks > 2;
        let block = is_long.then(|| len.div_ceil(ranks));
        let elements = |ranks| block.map_or(len, |block| ranks * block);
        let arguments = (lane, len, Some(root));
        let member = Member::new(context, Call::Broadcast, arguments, elements).await?;
        Ok(Broadcast { member, root: root.index(), block })
    }

    /// Declares a run, which reads `data` at the root and writes it at all other ranks.
    ///
    /// **Completion**, **Errors**: as [`Allreduce::run`](crate::Allreduce::run).
    pub fn run<'r>(&'r self, scope: &impl OneSided<'r>, data: &Region<'r, T>) -> Result<(), Error> {
        let member = &self.member;
        member.check_length("data", data, member.len)?;
        if member.len == 0 {
            return Ok(());
        }
        let scope = member.scope(scope)?;
        match self.block {
            None => self.run_tree(&scope, data),
            Some(block) => self.run_blocks(&scope, data, block),
        }
    }

    /// Returns the number of ranks from the root to this one, in a ring.
    fn distance(&self) -> usize {
        (self.member.rank + self.member.ranks - self.root) % self.member.ranks
    }

    /// Declares a binomial tree: in every round each rank that has the elements puts them to one
    /// more.
    fn run_tree<'r>(
        &'r self,
        scope: &impl OneSided<'r>,
        data: &Region<'r, T>,
    ) -> Result<(), Error> {
        let (member, distance) = (&self.member, self.distance());
        let all = 0..member.len;
        if distance == 0 {
            member.copy(scope, data, &member.part(all.clone()))?;
        }
        let mut reached = 1;
        while reached < member.ranks {
            if distance < reached && distance + reached < member.ranks {
                let to = (member.rank + reached) % member.ranks;
                member.put(scope, all.clone(), (to, 0))?;
            }
            let arrives = (reached..2 * reached).contains(&distance);
            member.end_round(scope, usize::from(arrives), all.clone())?;
            reached *= 2;
        }
        if distance > 0 {
            member.copy(scope, &member.part(all), data)?;
        }
        Ok(())
    }

    /// Declares a scatter of blocks, which all ranks then gather. Block i of the array of a rank is
    /// for, or of, the i-th rank after it.
    fn run_blocks<'r>(
        &'r self,
        scope: &impl OneSided<'r>,
        data: &Region<'r, T>,
        block: usize,
    ) -> Result<(), Error> {
        let (member, is_root) = (&self.member, self.distance() == 0);
        let (rank, ranks, len) = (member.rank, member.ranks, member.len);
        let blocks = move || {
            (0..ranks).map(move |number| {
                let of_data = (rank + number) % ranks * block;
                (number * block, of_data.min(len)..(of_data + block).min(len))
            })
        };
        let array = member.part(0..ranks * block);
        if is_root {
            let task = member.task(scope, "copy", len).input(data).output(&array);
            task.spawn(move |data, mut array| {
                for (start, of_data) in blocks() {
                    array[start..start + of_data.len()].copy_from_slice(&data[of_data]);
                }
            })?;
            for to in member.others() {
                let start = (to + ranks - rank) % ranks * block;
                member.put(scope, start..start + block, (to, 0))?;
            }
        }
        member.end_round(scope, usize::from(!is_root), 0..block)?;
        member.gather_blocks(scope, block)?;
        if !is_root {
            let task = member.task(scope, "copy", len).input(&array).output(data);
            task.spawn(move |array, mut data| {
                for (start, of_data) in blocks() {
                    data[of_data.clone()].copy_from_slice(&array[start..start + of_data.len()]);
                }
            })?;
        }
        Ok(())
    }
}
