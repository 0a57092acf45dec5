//! Steps whose tasks are spawned anew or replayed, and their rounds of one-sided communication.

use std::ops::Range;

use talpf::{Arrivals, Halo, Lane, MemorySlot, OneSided, Rank, RemoteRegion};
use talpf_runtime::{Each, Ix2, Lookahead, Rect, Region, Scope, TaskBuilder};

use super::{Machine, Observer, Protocol, RankContext, Transfer};
use crate::Error;

/// Number of steps that overlap in most applications. Enough to have work while data is in flight;
/// more costs memory and caches.
pub(crate) const LOOKAHEAD: usize = 4;

/// Step of a rank, whose tasks are spawned or replayed.
#[derive(Clone, Copy)]
pub(crate) enum Step<'s, 'a> {
    /// Tasks and operations are spawned.
    Spawned(&'s RankContext),
    /// Tasks and operations are declared once, for all steps of an iteration.
    Replayed(&'s talpf::Iteration<'s, 'a>),
    /// Tasks, of which some send or receive messages, are declared once.
    WithMessages(&'s talpf_runtime::Iteration<'a>),
}

impl<'a> Scope<'a> for Step<'_, 'a> {
    fn task(&self, label: &'static str) -> TaskBuilder<'_, (), (), Each<'_, 'a>> {
        match self {
            Self::Spawned(ctx) => Scope::task(ctx.group(), label),
            Self::Replayed(iteration) => Scope::task(*iteration, label),
            Self::WithMessages(iteration) => Scope::task(*iteration, label),
        }
    }
}

impl RankContext {
    /// Spawns `steps` steps: `unroll` of them are declared, to be replayed, or each is spawned once
    /// `lookahead` lets it. `declare` gets the number of the step, or of the first of those that it
    /// declares.
    pub(crate) async fn spawn_steps<'a>(
        &'a self,
        machine: Machine,
        steps: usize,
        unroll: usize,
        lookahead: &mut Lookahead,
        declare: impl Fn(Step<'_, 'a>, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if machine.replays() {
            self.iterate(steps, unroll, declare)?;
        } else {
            for step in 0..steps {
                lookahead.step().await?;
                declare(Step::Spawned(self), step)?;
            }
        }
        Ok(())
    }

    /// Declares `unroll` steps, which then run `steps` times in all.
    pub(crate) fn iterate<'a>(
        &'a self,
        steps: usize,
        unroll: usize,
        declare: impl Fn(Step<'_, 'a>, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self {
            Self::OneSided(ctx, _) => ctx.iterate_unrolled(steps, unroll, |iteration, number| {
                declare(Step::Replayed(iteration), number)
            }),
            Self::TwoSided(messages) => {
                let group = messages.group();
                group.iterate_unrolled(steps, unroll, |iteration, number| {
                    declare(Step::WithMessages(iteration), number)
                })
            }
        }
    }
}

/// Exchange of a rank in one round of a lane.
pub(crate) struct Round<'a, D> {
    pub(crate) protocol: Protocol,
    pub(crate) lane: &'a Lane,
    /// Regions that are put, or that peers get.
    pub(crate) given: Vec<Region<'a, f64, D>>,
    /// Destinations of puts from peers, or of gets.
    pub(crate) taken: Vec<Region<'a, f64, D>>,
    /// Remote destinations of the given regions, or remote sources of the taken ones.
    pub(crate) remotes: Vec<RemotePiece>,
}

/// Rectangle of a matrix of another rank.
pub(crate) struct RemotePiece {
    pub(crate) slot: MemorySlot<f64>,
    pub(crate) rank: Rank,
    pub(crate) rows: Range<usize>,
    pub(crate) cols: Range<usize>,
}

impl RemotePiece {
    /// Returns the cells `rect` of a rank's matrix.
    pub(crate) fn of(slot: &MemorySlot<f64>, rank: Rank, rect: Rect) -> Self {
        let Rect { row, row_end, col, col_end } = rect;
        let (rows, cols) = (row as usize..row_end as usize, col as usize..col_end as usize);
        RemotePiece { slot: slot.clone(), rank, rows, cols }
    }

    fn region(&self) -> RemoteRegion<'_, f64> {
        self.slot.region(self.rank, self.rows.clone(), self.cols.clone())
    }
}

impl<'a> Round<'a, Ix2> {
    /// Creates the exchange of a halo with all neighbours.
    pub(crate) fn of_halo(halo: &'a Halo<f64>, protocol: Protocol, lane: &'a Lane) -> Self {
        let remotes = halo.faces().iter().map(|face| {
            let rect = match protocol.transfer {
                Transfer::Put => face.its_halo,
                Transfer::Get => face.its_edge,
            };
            RemotePiece::of(halo.slot(), face.neighbour, rect)
        });
        let (given, taken) = (halo.edges().collect(), halo.halos().collect());
        Round { protocol, lane, given, taken, remotes: remotes.collect() }
    }
}

impl<'a, D: Send + 'static> Round<'a, D> {
    /// Declares the operations of the round and its end. A replayed round without pieces has no
    /// end, since nothing would delay it.
    pub(crate) fn declare(mut self, step: Step<'_, 'a>) -> Result<(), Error> {
        // Operations are counted at the rank whose memory they access.
        if let Arrivals::Msg(count) = &mut self.protocol.mode.arrivals {
            let reached = match self.protocol.transfer {
                Transfer::Put => &self.taken,
                Transfer::Get => &self.given,
            };
            *count = reached.len() as u32;
        }
        match step {
            Step::Replayed(_) if self.given.is_empty() && self.taken.is_empty() => Ok(()),
            Step::Replayed(iteration) => self.declare_in(&iteration.on(self.lane)?),
            Step::Spawned(_) | Step::WithMessages(_) => self.declare_in(self.lane),
        }
    }

    /// Declares a put or a get of every piece, and the sync with its windows.
    fn declare_in(&self, scope: &impl OneSided<'a>) -> Result<(), Error> {
        let remotes = self.remotes.iter().map(RemotePiece::region);
        match self.protocol.transfer {
            Transfer::Put => {
                self.given.iter().zip(remotes).try_for_each(|(from, to)| scope.put(from, to))?
            }
            Transfer::Get => {
                self.taken.iter().zip(remotes).try_for_each(|(to, from)| scope.get(from, to))?
            }
        }
        let sync = scope.sync(self.protocol.mode);
        let sync = match self.protocol.transfer {
            Transfer::Put => self.taken.iter().fold(sync, |sync, region| sync.window(region)),
            Transfer::Get => self.given.iter().fold(sync, |sync, region| sync.expose(region)),
        };
        Ok(sync.spawn()?)
    }
}

/// Declares a task that counts a step at rank 0 when `last` is complete.
pub(crate) fn declare_count<'a, T: Send + Sync + 'static, D: Send + 'static>(
    ctx: &RankContext,
    observer: &Observer,
    step: Step<'_, 'a>,
    last: &Region<'a, T, D>,
) -> Result<(), Error> {
    if ctx.rank() > 0 {
        return Ok(());
    }
    let progress = observer.progress.clone();
    let task = step.task("step").inline().input(last);
    Ok(task.spawn_borrowed(move |_last| progress.advance())?)
}

#[cfg(test)]
mod tests;
