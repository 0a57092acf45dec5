//! Steps whose tasks are spawned anew or replayed.

use talpf::{Lane, LaneScope};
use talpf_runtime::{Each, Lookahead, Region, Scope, TaskBuilder};
use talpf_traces::{Event, ValueKind};

use super::{Machine, Observer, RankContext};
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

impl<'a> Step<'_, 'a> {
    /// Returns the scope of one-sided operations on `lane` in this step.
    ///
    /// **Errors**: a lane of another rank. **Panics** in a step with messages.
    pub(crate) fn on<'s>(&'s self, lane: &'a Lane) -> Result<LaneScope<'s, 'a>, Error>
    where
        'a: 's,
    {
        match self {
            Self::Spawned(_) => Ok(LaneScope::Spawned(lane)),
            Self::Replayed(iteration) => Ok(LaneScope::Replayed(iteration.on(lane)?)),
            Self::WithMessages(_) => unreachable!("messages have no lane"),
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
