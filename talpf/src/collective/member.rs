//! The part of one rank in a collective.

use std::fmt;
use std::ops::Range;

use bytemuck::Pod;
use talpf_runtime::{Array, Each, Region, TaskBuilder};

use crate::all_gather::Call;
use crate::context::Context;
use crate::error::Error;
use crate::lane::Lane;
use crate::numbers::Rank;
use crate::one_sided::{LaneScope, OneSided};
use crate::slot::MemorySlot;
use crate::sync::SyncMode;

/// Number of bytes up to which a copy takes less time than a queue.
const SHORT: usize = 4 << 10;
/// Names of the arguments that are the same at all ranks.
const ARGUMENTS: [&str; 3] = ["number of the lane", "number of elements", "root"];

/// The part of one rank in a collective: its lane, and the array that peers put to.
pub(super) struct Member<T: Pod + Send + Sync> {
    pub(super) rank: usize,
    pub(super) ranks: usize,
    /// Number of elements that the collective was made for.
    pub(super) len: usize,
    call: Call,
    lane: Lane,
    array: Array<T>,
    slot: MemorySlot<T>,
}

impl<T: Pod + Send + Sync> Member<T> {
    /// Makes the part of this rank, with an array of `elements`. Collective.
    ///
    /// **Errors**: those of `register_global`; arguments that differ, which name the rank and both
    /// values; a root that does not exist; a lane of another rank.
    pub(super) async fn new(
        context: &Context,
        call: Call,
        (lane, len, root): (Lane, usize, Option<Rank>),
        elements: impl FnOnce(usize) -> usize,
    ) -> Result<Self, Error> {
        let root = root.unwrap_or(Rank(0));
        let here = [u64::from(lane.lane_number().0), len as u64, u64::from(root.0)];
        let checked = context.at().check_same_rank(&lane.at).and_then(|()| context.peer(root.0));
        let own = checked.map(|_| (here.map(u64::to_le_bytes).as_flattened().to_vec(), ()));
        let ((), all) = context.world().all_gather(context.rank(), call, own).await?;
        for (rank, bytes) in all.each() {
            check_arguments(call, &here, rank, bytes)?;
        }
        let (rank, ranks) = (context.rank().index(), context.size() as usize);
        let elements = elements(ranks).max(1);
        let array = Array::new(context.group(), vec![T::zeroed(); elements], elements)?;
        let array = array.named(call.name());
        let slot = context.register_global(&array).await?;
        Ok(Member { rank, ranks, len, call, lane, array, slot })
    }

    /// Makes the part of this rank in a collective of which `root` has `len` elements for each rank.
    /// Collective.
    ///
    /// **Errors**: as [`Member::new`].
    pub(super) async fn rooted(
        context: &Context,
        call: Call,
        lane: Lane,
        len: usize,
        root: Rank,
    ) -> Result<Self, Error> {
        let is_root = context.rank() == root;
        let elements = |ranks| if is_root { ranks * len } else { len };
        Self::new(context, call, (lane, len, Some(root)), elements).await
    }

    /// Returns the lane of the collective, or its rounds in a step: operations on `scope` become
    /// those of a run.
    ///
    /// **Errors**: a scope of another rank.
    pub(super) fn scope<'s, 'r>(
        &'r self,
        scope: &'s impl OneSided<'r>,
    ) -> Result<LaneScope<'s, 'r>, Error>
    where
        'r: 's,
    {
        scope.on(&self.lane)
    }

    /// Checks the length of a region of the program.
    pub(super) fn check_length(
        &self,
        what: &'static str,
        region: &Region<'_, T>,
        expected: usize,
    ) -> Result<(), Error> {
        let elements = region.len();
        if elements == expected {
            return Ok(());
        }
        Err(Error::RegionLength { call: self.call.name(), what, elements, expected })
    }

    /// Checks a region of the program that this rank has to give.
    pub(super) fn check_present<'a, 'r>(
        &self,
        what: &'static str,
        region: Option<&'a Region<'r, T>>,
        expected: usize,
    ) -> Result<&'a Region<'r, T>, Error> {
        let call = self.call.name();
        let region = region.ok_or(Error::RegionLength { call, what, elements: 0, expected })?;
        self.check_length(what, region, expected)?;
        Ok(region)
    }

    /// Returns a part of the array.
    pub(super) fn part(&self, range: Range<usize>) -> Region<'_, T> {
        self.array.region(range)
    }

    /// Begins the declaration of a task that copies or folds the elements of a region.
    pub(super) fn task<'s, 'r>(
        &self,
        scope: &'s impl OneSided<'r>,
        label: &'static str,
        elements: usize,
    ) -> TaskBuilder<'s, (), (), Each<'s, 'r>> {
        let task = scope.task(label);
        if elements * size_of::<T>() <= SHORT { task.inline() } else { task }
    }

    /// Declares a copy between regions of equal lengths.
    pub(super) fn copy<'r>(
        &self,
        scope: &impl OneSided<'r>,
        from: &Region<'r, T>,
        to: &Region<'r, T>,
    ) -> Result<(), Error> {
        let task = self.task(scope, "copy", to.len()).input(from).output(to);
        Ok(task.spawn(|from, mut to| to.copy_from_slice(&from))?)
    }

    /// Declares a put of a part of the array to element `index` of the array at rank `to`.
    pub(super) fn put<'r>(
        &'r self,
        scope: &impl OneSided<'r>,
        part: Range<usize>,
        (to, index): (usize, usize),
    ) -> Result<(), Error> {
        scope.put(&self.part(part), self.slot.at(Rank(to as u32), index))
    }

    /// Declares the end of a round in which `arrivals` puts land in a part of the array.
    pub(super) fn end_round<'r>(
        &'r self,
        scope: &impl OneSided<'r>,
        arrivals: usize,
        window: Range<usize>,
    ) -> Result<(), Error> {
        let sync = scope.sync(SyncMode::msg(arrivals as u32));
        if arrivals == 0 { sync.spawn() } else { sync.window(&self.part(window)).spawn() }
    }

    /// Declares the rounds of Bruck's algorithm, which gathers a block of each rank at all ranks:
    /// block i of the array, beginning with the own block, is that of the i-th rank after this one.
    pub(super) fn gather_blocks<'r>(
        &'r self,
        scope: &impl OneSided<'r>,
        block: usize,
    ) -> Result<(), Error> {
        let mut known = 1;
        while known < self.ranks {
            let new = known.min(self.ranks - known);
            let to = (self.rank + self.ranks - known) % self.ranks;
            self.put(scope, 0..new * block, (to, known * block))?;
            self.end_round(scope, 1, known * block..(known + new) * block)?;
            known += new;
        }
        Ok(())
    }

    /// Iterates over the other ranks, beginning after this one, so that not all ranks address the
    /// same rank first.
    pub(super) fn others(&self) -> impl Iterator<Item = usize> {
        let (rank, ranks) = (self.rank, self.ranks);
        (1..ranks).map(move |distance| (rank + distance) % ranks)
    }
}

impl<T: Pod + Send + Sync> Drop for Member<T> {
    /// Takes the slot out of the register once the rounds of this rank have ended.
    fn drop(&mut self) {
        let (at, slot) = (self.lane.at.clone(), self.slot.clone());
        let task = self.lane.group().task("deregister").inline().inout(&self.array.all());
        // Without a runtime there is no register. A run that has ended has none either.
        let _ = task.spawn(move |_array| drop(at.sender().slots.remove(&slot.slot)));
    }
}

impl<T: Pod + Send + Sync> fmt::Debug for Member<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} elements on {}", self.call.name(), self.len, self.lane.lane_number())
    }
}

/// Checks that a rank has given the same arguments.
fn check_arguments(call: Call, here: &[u64], rank: Rank, bytes: &[u8]) -> Result<(), Error> {
    let (words, rest) = bytes.as_chunks::<{ size_of::<u64>() }>();
    if words.len() != here.len() || !rest.is_empty() {
        let what = "malformed arguments of a collective".to_owned();
        return Err(Error::BadControlMessage { rank, what });
    }
    let there = words.iter().map(|word| u64::from_le_bytes(*word));
    for ((what, &here), there) in ARGUMENTS.into_iter().zip(here).zip(there) {
        if here != there {
            return Err(Error::ArgumentsDiffer { call: call.name(), what, rank, here, there });
        }
    }
    Ok(())
}
