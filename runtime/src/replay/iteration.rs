//! Declaration of an iteration, and the start of its replay.

use std::any::TypeId;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::plan::{LINKS, NoPlan, Plan, Sketch};
use super::run::{OnFailure, Run};
use super::{Each, ReplayedTask};
use crate::data::{Mode, Rect};
use crate::dependency::{Clauses, Declared, Joins, OpenReduction};
use crate::error::Error;
use crate::group::{Group, GroupInner};
use crate::guard::Hold;
use crate::record::{Label, Traits, record};
use crate::scheduler::{Policy, preferred_workers};
use crate::task::{Many, Repeated, TaskBuilder, free_task, new_repeated};

/// The tasks of one iteration, while they are declared. Arrays live for `'a`.
///
/// A task that is declared here runs once in every step, with the same body; [`current_step`](crate::current_step) is the
/// number of the step. The body may have [`Children`](crate::Children), which it spawns afresh in
/// every step: the task is complete when they are, and the regions of its accesses that they use
/// are released then, not before. A child that fails and poisons some of them stops the steps. Weak
/// accesses are lent as those of other tasks, but waited for. Reductions are combined with the
/// region at the end of every step, under a lock.
///
/// **Ordering**: of a task with more than 32 accesses, those from the 32nd on count as released
/// when the last of them is: a task that waits for one of them waits for all.
pub struct Iteration<'a> {
    group: Arc<GroupInner>,
    recorded: RefCell<Recorded<'a>>,
}

#[derive(Default)]
struct Recorded<'a> {
    /// Open reductions by array, operator and region.
    reductions: HashMap<(u64, TypeId, Rect), Arc<OpenReduction>>,
    sketch: Sketch,
    declared: Vec<Declared<'a>>,
    tasks: Vec<Task>,
    on_failure: Vec<OnFailure>,
    /// First step of the tasks that are declared now.
    first_step: usize,
}

/// A declared task, without its accesses.
struct Task {
    traits: Traits,
    body: Box<dyn Repeated>,
    /// Step of the task in the first iteration.
    first_step: usize,
}

impl<'a> Iteration<'a> {
    /// Begins the declaration of a task of the group that iterates.
    pub fn task(&self, label: &'static str) -> TaskBuilder<'_, (), (), Each<'_, 'a>> {
        TaskBuilder::new(&self.group, label).running(Each(Some(self)))
    }

    /// Adds an action that runs once, if a failed or cancelled task stops the steps: for a program
    /// that others wait for. It runs on the thread of that task, before the task releases its
    /// regions, and must not wait for anything.
    pub fn on_failure(&self, action: impl FnOnce(Error) + Send + 'static) {
        self.recorded.borrow_mut().on_failure.push(Box::new(action));
    }

    pub(super) fn add(
        &self,
        traits: Traits,
        refused: Option<&'static str>,
        clauses: &impl Clauses<'a>,
        body: Box<dyn Repeated>,
    ) -> Result<(), Error> {
        let recorded = &mut *self.recorded.borrow_mut();
        let first = recorded.declared.len();
        clauses.for_each(|access| recorded.declared.push(*access));
        if let Err(error) = check(&traits, refused, &recorded.declared[first..]) {
            recorded.declared.truncate(first);
            return Err(error);
        }
        let count = recorded.declared.len() - first;
        for nth in 0..count {
            let access = recorded.declared[first + nth];
            let operator = clauses.joins(nth).map(|joins| recorded.join(joins, &access));
            recorded.sketch.add(&access, operator);
        }
        recorded.sketch.counts.push(count);
        let first_step = recorded.first_step;
        recorded.tasks.push(Task { traits, body, first_step });
        Ok(())
    }
}

/// Checks the accesses of a task. `refused` names what it has that no iteration can have.
fn check(
    traits: &Traits,
    refused: Option<&'static str>,
    accesses: &[Declared<'_>],
) -> Result<(), Error> {
    accesses.iter().try_for_each(Declared::check_bounds)?;
    let lent = || accesses.iter().any(|access| access.lender().is_some());
    match refused.or_else(|| lent().then_some("regions that were lent")) {
        Some(what) => Err(Error::Replayed { label: traits.label.text().to_owned(), what }),
        None => Ok(()),
    }
}

impl Recorded<'_> {
    /// Lets an access join its reduction, for all steps. Returns the operator.
    fn join(&mut self, joins: &dyn Joins, access: &Declared<'_>) -> TypeId {
        let (operator, rect) = (joins.operator(), access.rect());
        if !rect.is_empty() {
            let key = (access.core().id(), operator, rect);
            let joined = joins.join(self.reductions.get(&key), access);
            self.reductions.insert(key, joined);
            joins.stay();
        }
        operator
    }
}

impl Group {
    /// Runs the tasks that `declare` declares in every step from 0 to `steps`, as if they were
    /// spawned anew each time. They are declared once, with [`Iteration::task`], and are tasks of
    /// this group. [`current_step`](crate::current_step) is the number of the step that a body runs in.
    ///
    /// ```
    /// # use talpf_runtime::{Array, Config, Error, Runtime, current_step};
    /// # let runtime = Runtime::new(Config::default())?;
    /// let sums = Array::new(&runtime, vec![0u64; 8], 1)?;
    /// runtime.iterate(100, |iteration| {
    ///     for tile in 0..sums.tiles() {
    ///         let task = iteration.task("add").inout(&sums.tile(tile));
    ///         task.spawn(|mut sum| sum[0] += current_step().unwrap() as u64)?;
    ///     }
    ///     Ok::<(), Error>(())
    /// })?;
    /// let total = runtime.task("total").input(&sums.all()).run(|sums| sums.iter().sum::<u64>())?;
    /// assert_eq!(runtime.block_on(total)??, 8 * 4950);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// **Ordering**: within the steps as by discovery, except that a task also waits for itself in
    /// the step before and that commutative tasks keep their order. The first step begins when no
    /// task spawned before uses a tile of the graph any more; a task spawned later waits, tile by
    /// tile, until the last step has released its regions. **Scheduling**: other tasks may run
    /// inside the spawn, so hold no lock that they take (see
    /// [`Config::throttle`](crate::Config::throttle)). **Completion**: returns at once. A task that
    /// fails stops the steps, and the data that they write is poisoned (R4). **Errors**: those of
    /// `declare`; accesses of one task that conflict with each other; a runtime that has shut down.
    /// Nothing runs then. **Cost**: memory for one iteration, however many steps there are.
    pub fn iterate<'a, E: From<Error>>(
        &self,
        steps: usize,
        declare: impl FnOnce(&Iteration<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut declare = Some(declare);
        self.iterate_unrolled(steps, 1, |iteration, _| match declare.take() {
            Some(declare) => declare(iteration),
            None => Ok(()),
        })
    }

    /// Runs tasks in every step as [`Group::iterate`] does, for graphs in which the steps
    /// alternate, as between two arrays: the loop is unrolled, so that an iteration of the graph is
    /// `unroll` steps. `declare` is called for each of them, with its number from 0 to `unroll`;
    /// step `s` then runs the tasks of step `s % unroll`.
    ///
    /// ```
    /// # use talpf_runtime::{Array, Config, Error, Runtime};
    /// # let runtime = Runtime::new(Config::default())?;
    /// let lines = [Array::new(&runtime, vec![1.0; 8], 8)?, Array::new(&runtime, vec![0.0; 8], 8)?];
    /// runtime.iterate_unrolled(5, 2, |iteration, step| {
    ///     let [old, new] = [&lines[step], &lines[1 - step]];
    ///     iteration.task("halve").input(&old.all()).output(&new.all()).spawn(|old, mut new| {
    ///         new.iter_mut().zip(&*old).for_each(|(new, old)| *new = old / 2.0);
    ///     })
    /// })?;
    /// let last = runtime.task("read").input(&lines[1].all()).run(|line| line[0])?;
    /// assert_eq!(runtime.block_on(last)??, 1.0 / 32.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// **Errors**: those of [`Group::iterate`]; an `unroll` of 0.
    pub fn iterate_unrolled<'a, E: From<Error>>(
        &self,
        steps: usize,
        unroll: usize,
        mut declare: impl FnMut(&Iteration<'a>, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        if unroll == 0 {
            return Err(Error::Size {
                what: "number of steps in an iteration",
                value: 0,
                limit: 1,
            }
            .into());
        }
        let iteration = Iteration { group: Arc::clone(self.inner()), recorded: RefCell::default() };
        for step in 0..unroll.min(steps) {
            iteration.recorded.borrow_mut().first_step = step;
            declare(&iteration, step)?;
        }
        if iteration.recorded.borrow().tasks.is_empty() {
            return Ok(());
        }
        Ok(spawn(self.inner(), iteration.recorded.into_inner(), (steps, unroll))?)
    }
}

/// Spawns the task that holds the tiles of a graph and lets it run.
fn spawn(
    group: &Arc<GroupInner>,
    recorded: Recorded<'_>,
    (steps, unroll): (usize, usize),
) -> Result<(), Error> {
    let Recorded { sketch, declared, tasks, on_failure, .. } = recorded;
    let label = Label::new("iterate");
    declared
        .iter()
        .try_for_each(|declared| declared.check_runtime(&group.arrays, group.head(), label))?;
    let plan = plan_of(group, sketch, &declared, &tasks)?;
    let lengths = tasks.chunk_by(|one, next| one.first_step == next.first_step).map(<[_]>::len);
    let is_inline = |task: usize| tasks[task].traits.marks().is_inline();
    let workers = group.set.workers();
    let policies = group.shared.config.policies;
    let successors = |task| match policies.has(Policy::Cycles) {
        true => plan.successors_of(task),
        false => &[],
    };
    let preferred = match policies.has(Policy::PreferredWorkers) {
        true => preferred_workers(lengths, is_inline, successors, workers),
        false => vec![None; tasks.len()],
    };
    let mut replayed = Vec::with_capacity(tasks.len());
    let mut first = 0;
    for (index, Task { traits, body, first_step }) in tasks.into_iter().enumerate() {
        let end = first + plan.counts()[index];
        let new = new_repeated(group, &traits, &declared[first..end]);
        let task = match new {
            Ok(task) => task,
            Err(full) => {
                replayed.iter().for_each(|made: &ReplayedTask| free_task(made.task));
                return Err(full);
            }
        };
        // Shown in reports.
        record(task).pending.set(plan.within[index] + plan.across[index]);
        let last_step = steps - 1 - (steps - 1 - first_step) % unroll;
        let worker = group.affinity().map(|worker| worker as u32).or(preferred[index]);
        let worker = worker.filter(|_| !traits.marks().is_inline());
        let own_steps = (first_step, last_step);
        replayed.push(ReplayedTask::new(task, body, &plan, (index, first), own_steps, worker));
        first = end;
    }
    let tiles = plan.tiles.iter().map(|tile| {
        let mode = if tile.writes { Mode::InOut } else { Mode::In };
        declared[tile.access].tile(tile.number, mode)
    });
    let clause = Many::<Hold>::new(tiles.collect());
    let run = Run::new(replayed.into(), plan, (steps, unroll), on_failure);
    TaskBuilder::new(group, "iterate").with(clause).spawn(move |holds| run.start(holds))
}

/// Returns the plan of a graph: that of the graph before, if it has the same accesses.
fn plan_of(
    group: &GroupInner,
    sketch: Sketch,
    declared: &[Declared<'_>],
    tasks: &[Task],
) -> Result<Arc<Plan>, Error> {
    let mut last = group.last_plan.lock();
    if let Some(plan) = last.as_ref().filter(|plan| plan.is_of(&sketch)) {
        return Ok(Arc::clone(plan));
    }
    let counts = sketch.counts.clone();
    let plan = Plan::new(sketch, declared).map_err(|refused| match refused {
        NoPlan::TooMany(value) => {
            Error::Size { what: "number of links of an iterated graph", value, limit: LINKS }
        }
        NoPlan::Overlap { task, first, second } => {
            let begin: usize = counts[..task].iter().sum();
            let [first, second] = [first, second].map(|access| &declared[begin + access]);
            Error::OverlappingAccesses {
                label: tasks[task].traits.label.text().to_owned(),
                first: first.rect(),
                first_mode: first.mode(),
                array: second.core().label(),
                second: second.rect(),
                second_mode: second.mode(),
            }
        }
    })?;
    Ok(Arc::clone(last.insert(Arc::new(plan))))
}
