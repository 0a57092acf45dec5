//! Steps whose tasks are spawned anew or replayed, and their rounds of one-sided communication.
//!
//! A spawned put belongs to the round that is open at that time, and a window to the sync that was
//! spawned with it. A replayed graph spawns nothing: there a [`Round`] is one task, whose body
//! takes the open round and ends it. A token keeps the rounds of a lane in the order of the steps,
//! and other rounds of the lane are spawned before or after the graph. The pieces of a replayed
//! round leave together, once the last piece and all destinations are available. Messages are
//! ordinary tasks.
//!
//! The body ends before its round does. The guards of its operations and windows keep the task from
//! the next step; if the run fails, the guards in windows fail the task.

use talpf::{Arrivals, Context, LaneNumber, MemorySlot, Rank, SyncHandle};
use talpf_runtime::{
    Each, Group, InOut, Iteration, Region, Scope, TaskBuilder, Token, fail_current_task,
};

use super::{Observer, Protocol, RankContext, Transfer};
use crate::Error;

/// Step of a rank, whose tasks are spawned or replayed.
#[derive(Clone, Copy)]
pub(crate) enum Step<'s, 'a> {
    /// Tasks are spawned; those that compute have the token as input.
    Spawned(&'a Token),
    /// Tasks are declared once, for all steps of a graph.
    Replayed(&'s Iteration<'a>),
}

impl<'s, 'a> Step<'s, 'a> {
    /// Begins the declaration of a task, of `group` if it is spawned. A task that computes has the
    /// [tokens](Self::tokens) as inputs.
    pub(crate) fn task(
        self,
        group: &'s Group,
        label: &'static str,
    ) -> TaskBuilder<'s, (), (), Each<'s, 'a>> {
        match self {
            Self::Spawned(_) => Scope::task(group, label),
            Self::Replayed(iteration) => iteration.task(label),
        }
    }

    /// Returns the token of a step that is spawned; steps of a graph have none.
    pub(crate) fn tokens(self) -> Option<Region<'a, ()>> {
        match self {
            Self::Spawned(token) => Some(token.region()),
            Self::Replayed(_) => None,
        }
    }
}

/// Exchange of a rank in one round of a lane.
pub(crate) struct Round<'a, D> {
    pub(crate) ctx: &'a Context,
    pub(crate) protocol: Protocol,
    pub(crate) lane: LaneNumber,
    /// Token that orders the rounds of the lane.
    pub(crate) order: &'a Token,
    /// Regions that are put, or that peers get.
    pub(crate) given: Vec<Region<'a, f64, D>>,
    /// Destinations of puts from peers, or of gets.
    pub(crate) taken: Vec<Region<'a, f64, D>>,
    /// Remote destinations of the given regions, or remote sources of the taken ones.
    pub(crate) remotes: Vec<RemoteElement>,
}

/// Element of a slot of another rank.
pub(crate) struct RemoteElement {
    pub(crate) slot: MemorySlot<f64>,
    pub(crate) rank: Rank,
    pub(crate) index: usize,
}

impl<'a, D: Send + 'static> Round<'a, D> {
    /// Declares the operations of the round and its end. Returns the sync of a spawned round.
    pub(crate) fn declare(mut self, step: Step<'_, 'a>) -> Result<Option<SyncHandle>, Error> {
        // Operations are counted at the rank whose memory they access.
        if let Arrivals::Msg(count) = &mut self.protocol.mode.arrivals {
            let reached = match self.protocol.transfer {
                Transfer::Put => &self.taken,
                Transfer::Get => &self.given,
            };
            *count = reached.len() as u32;
        }
        match step {
            Step::Spawned(_) => self.spawn().map(Some),
            Step::Replayed(iteration) => self.replay(iteration).map(|()| None),
        }
    }

    fn spawn(self) -> Result<SyncHandle, Error> {
        let Self { ctx, protocol: Protocol { transfer, mode }, lane, given, taken, .. } = self;
        let remotes = self.remotes.iter().map(|remote| remote.slot.at(remote.rank, remote.index));
        let pieces = match transfer {
            Transfer::Put => &given,
            Transfer::Get => &taken,
        };
        for (piece, remote) in pieces.iter().zip(remotes) {
            match transfer {
                Transfer::Put => ctx.put_on(lane, piece, remote)?,
                Transfer::Get => ctx.get_on(lane, remote, piece)?,
            }
        }
        let sync = ctx.sync_of(lane, mode);
        let sync = match transfer {
            Transfer::Put => taken.iter().fold(sync, |sync, region| sync.window(region)),
            Transfer::Get => given.iter().fold(sync, |sync, region| sync.expose(region)),
        };
        Ok(sync.spawn()?)
    }

    /// Declares the round as a task, unless it has no pieces: then nothing would delay it.
    fn replay(self, iteration: &Iteration<'a>) -> Result<(), Error> {
        let Self { protocol: Protocol { transfer, mode }, lane, remotes, .. } = self;
        if self.given.is_empty() && self.taken.is_empty() {
            return Ok(());
        }
        let task = iteration.task("exchange").communicates().inline().inout(&self.order.region());
        let task = task.input(self.given).inout(self.taken);
        let ctx = self.ctx.clone();
        let exchange = move |_order: InOut<()>, given: Vec<_>, taken: Vec<_>| {
            let round = ctx.round_of(lane);
            let sync = ctx.sync_of(lane, mode);
            let remotes = remotes.iter().map(|remote| remote.slot.at(remote.rank, remote.index));
            // The task holds the guards of its operations, so nobody awaits the operations. Windows
            // open first, since a neighbour may be waiting for one.
            let sync = match transfer {
                Transfer::Put => {
                    let sync = taken.into_iter().fold(sync, |sync, guard| sync.window_with(guard));
                    given.into_iter().zip(remotes).for_each(|(from, to)| drop(round.put(from, to)));
                    sync
                }
                Transfer::Get => {
                    let sync = given.into_iter().fold(sync, |sync, guard| sync.expose_with(guard));
                    taken.into_iter().zip(remotes).for_each(|(to, from)| drop(round.get(from, to)));
                    sync
                }
            };
            drop(round);
            sync.spawn()
        };
        Ok(task.spawn(move |order, given, taken| {
            if let Err(error) = exchange(order, given, taken) {
                fail_current_task(error.to_string()).expect("called in a task");
            }
        })?)
    }
}

/// Declares a task that counts a step at rank 0 when `last` is complete.
pub(crate) fn declare_count<'a, D: Send + 'static>(
    ctx: &RankContext,
    observer: &Observer,
    iteration: &Iteration<'a>,
    last: &Region<'a, f64, D>,
) -> Result<(), Error> {
    if ctx.rank() > 0 {
        return Ok(());
    }
    let progress = observer.progress.clone();
    let task = iteration.task("step").inline().input(last);
    Ok(task.spawn_borrowed(move |_last| progress.advance())?)
}

#[cfg(test)]
mod tests;
