//! Residual of a step on all ranks, as tasks.

use talpf_runtime::operator::Max;
use talpf_runtime::{Array, Group, JoinHandle, Region, current_step};

use super::{Convergence, Periods, Problem};
use crate::Error;
use crate::run::{Allreduce, RankContext, Step};

/// Lane of the reduction, the last one.
const LANE: u8 = u8::MAX;

/// Residual of a rank's program, if its run has a tolerance: the largest change of each of its tasks,
/// and the reduction over all tasks and ranks.
pub(crate) struct Residual {
    reduction: Option<Reduction>,
}

struct Reduction {
    group: Group,
    changes: Array<f64>,
    largest: Array<f64>,
    allreduce: Allreduce<Max>,
}

/// Step whose tasks compute their largest changes.
#[derive(Clone, Copy)]
pub(crate) struct CheckedStep<'a> {
    changes: &'a Array<f64>,
    /// Number of the step in its iteration, if it is replayed.
    number: Option<usize>,
}

impl Residual {
    /// Prepares the residual of steps of `tasks` tasks. Collective.
    pub(crate) async fn new(
        ctx: &RankContext,
        problem: &Problem,
        tasks: usize,
    ) -> Result<Self, Error> {
        if problem.tolerance().is_none() {
            return Ok(Self { reduction: None });
        }
        let largest = Array::new(ctx.group(), vec![0.0], 1)?;
        let allreduce = Allreduce::new(ctx, LANE, 1, Max).await?;
        let changes = Array::new(ctx.group(), vec![0.0; tasks], 1)?;
        let group = ctx.group().clone();
        Ok(Self { reduction: Some(Reduction { group, changes, largest, allreduce }) })
    }

    /// Returns the step as a checked one, if it is or may be the step `last` of a period: a replayed
    /// step is declared for all steps of its period.
    pub(crate) fn in_step(
        &self,
        step: Step<'_, '_>,
        number: usize,
        last: usize,
    ) -> Option<CheckedStep<'_>> {
        let changes = &self.reduction.as_ref()?.changes;
        match step {
            Step::Spawned(_) | Step::Superstep(..) => {
                (number == last).then_some(CheckedStep { changes, number: None })
            }
            _ => Some(CheckedStep { changes, number: Some(last) }),
        }
    }

    /// Spawns the reduction of the period before the one that has begun, if it may end the run.
    /// Returns a handle of the residual.
    pub(crate) fn of_period_before(
        &self,
        periods: &Periods,
    ) -> Result<Option<JoinHandle<f64>>, Error> {
        match &self.reduction {
            Some(reduction) if periods.may_end() => Ok(Some(reduction.spawn()?)),
            _ => Ok(None),
        }
    }

    /// Reduces the changes of the last period, and returns the end of the run, if it has a
    /// tolerance.
    pub(crate) async fn end(self, periods: &Periods) -> Result<Option<Convergence>, Error> {
        let Some(reduction) = &self.reduction else { return Ok(None) };
        let residual = reduction.spawn()?.await?;
        Ok(Some(Convergence { steps: periods.steps(), residual }))
    }
}

impl Reduction {
    /// Spawns the tasks that reduce the changes, after those of a checked step.
    fn spawn(&self) -> Result<JoinHandle<f64>, Error> {
        let (group, largest) = (&self.group, self.largest.all());
        let fold = group.task("residual").inline().input(&self.changes.all()).output(&largest);
        fold.spawn(|changes, mut largest| {
            largest[0] = changes.iter().copied().fold(0.0, f64::max);
        })?;
        self.allreduce.spawn(group, &largest)?;
        let read = group.task("residual").inline().input(&largest);
        Ok(read.run(|largest| largest[0])?)
    }
}

impl<'a> CheckedStep<'a> {
    /// Returns the place for the largest change of a task.
    pub(crate) fn change(self, task: usize) -> Region<'a, f64> {
        self.changes.tile(task)
    }

    /// Returns a function that a task calls to know if its step is the checked one.
    pub(crate) fn condition(self) -> impl Fn() -> bool + Send + Sync + 'static {
        let number = self.number;
        move || number.is_none() || current_step() == number
    }
}
