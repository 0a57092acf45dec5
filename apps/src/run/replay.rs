//! Steps whose tasks are spawned anew or replayed.

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use talpf::{Bsp, Lane, LaneScope};
use talpf_runtime::{Each, Lookahead, Region, Scope, TaskBuilder};
use talpf_traces::{Event, ValueKind};

use super::{Machine, Observer, Protocol, RankContext};
use crate::Error;

/// Number of steps that overlap in most applications. Enough to have work while data is in flight;
/// more costs memory and caches.
pub(crate) const LOOKAHEAD: usize = 4;

/// Puts that wait for the end of a superstep, if it has an exchange.
type PutQueue<'a> = Mutex<Option<Bsp<'a>>>;

/// Step of a rank, whose tasks are spawned or replayed.
#[derive(Clone, Copy)]
pub(crate) enum Step<'s, 'a> {
    /// Tasks and operations are spawned.
    Spawned(&'s RankContext),
    /// Tasks are spawned, and puts are queued.
    Superstep(&'s talpf::Context, &'s PutQueue<'a>),
    /// Tasks and operations are declared once, for all steps of an iteration.
    Replayed(&'s talpf::Iteration<'s, 'a>),
    /// Tasks, of which some send or receive messages, are declared once.
    WithMessages(&'s talpf_runtime::Iteration<'a>),
}

impl<'a> Scope<'a> for Step<'_, 'a> {
    fn task(&self, label: &'static str) -> TaskBuilder<'_, (), (), Each<'_, 'a>> {
        match self {
            Self::Spawned(ctx) => Scope::task(ctx.group(), label),
            Self::Superstep(ctx, _) => Scope::task(ctx.group(), label),
            Self::Replayed(iteration) => Scope::task(*iteration, label),
            Self::WithMessages(iteration) => Scope::task(*iteration, label),
        }
    }
}

impl<'a> Step<'_, 'a> {
    /// Returns the scope of one-sided operations on `lane` in this step.
    ///
    /// **Errors**: a lane of another rank. **Panics** in a step with messages.
    pub(crate) fn on<'s>(&'s self, lane: &'a Lane) -> Result<LaneScope<'s, 'a>, Error>
    where
        'a: 's,
    {
        match self {
            Self::Spawned(_) | Self::Superstep(..) => Ok(LaneScope::Spawned(lane)),
            Self::Replayed(iteration) => Ok(LaneScope::Replayed(iteration.on(lane)?)),
            Self::WithMessages(_) => unreachable!("messages have no lane"),
        }
    }

    /// Returns the queue for the puts of a superstep, which then ends with a sync of all ranks;
    /// `None` if puts are not queued.
    pub(crate) fn queue(&self) -> Option<MappedMutexGuard<'_, Bsp<'a>>> {
        let Self::Superstep(ctx, queue) = self else { return None };
        Some(MutexGuard::map(queue.lock(), |queue| queue.get_or_insert_with(|| ctx.bsp())))
    }
}

/// Steps of a run.
pub(crate) struct Steps {
    /// Number of steps.
    pub(crate) count: usize,
    /// Number of steps after which the graph is the same again.
    pub(crate) unroll: usize,
    /// Number of parts of a step, of which each has at most one exchange.
    pub(crate) parts: usize,
}

impl RankContext {
    /// Spawns `steps`: some of them are declared, to be replayed, or each is spawned once
    /// `lookahead` lets it. `declare` gets the number of the step, or of the first of those that it
    /// declares, and the number of its part.
    pub(crate) async fn spawn_steps<'a>(
        &'a self,
        machine: Machine,
        steps: Steps,
        lookahead: &mut Lookahead,
        declare: impl Fn(Step<'_, 'a>, usize, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Steps { count, unroll, parts } = steps;
        if machine.replays() {
            return self.iterate(count, unroll, |step, number| {
                (0..parts).try_for_each(|part| declare(step, number, part))
            });
        }
        for number in 0..count {
            lookahead.step().await?;
            for part in 0..parts {
                self.spawn_part(|step| declare(step, number, part)).await?;
            }
        }
        Ok(())
    }

    /// Spawns a part of a step. If puts are queued and the part has an exchange, it ends a
    /// superstep: all tasks are waited for, then all ranks sync.
    pub(crate) async fn spawn_part<'a>(
        &'a self,
        declare: impl FnOnce(Step<'_, 'a>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let RankContext::OneSided(ctx, Protocol { is_queued: true, .. }) = self else {
            return declare(Step::Spawned(self));
        };
        let queue = PutQueue::default();
        declare(Step::Superstep(ctx, &queue))?;
        if let Some(mut bsp) = queue.into_inner() {
            ctx.group().wait().await?;
            bsp.sync().await?;
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
    let (progress, group) = (observer.progress.clone(), ctx.group().clone());
    let task = step.task("step").inline().input(last);
    Ok(task.spawn_borrowed(move |_last| {
        let (rank, value) = (group.number(), progress.advance() as i64);
        group.trace(|_| Event::Value { rank, kind: ValueKind::Step, value });
    })?)
}

#[cfg(test)]
mod tests;
