//! Graphs that repeat: one iteration is recorded, the others are replayed without discovery.
//!
//! [`Group::iterate`] has the tasks of one iteration declared. Their edges, within an iteration and
//! from one to the next, are found once ([`plan`]); a task then waits for a count of edges that is
//! set anew in each iteration ([`node`]), so that consecutive iterations overlap as they would if
//! each had been spawned. The group remembers the last graph: if the next one has the same accesses
//! its edges are used again, and otherwise they are found anew.
//!
//! What is not of the graph is ordered before or after it tile by tile ([`run`]).

mod bodies;
mod closed;
mod homes;
mod node;
mod plan;
mod run;
mod waits;

use std::any::TypeId;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use self::homes::homes;
use self::plan::{LINKS, NoPlan, Plan, Sketch};
use self::run::Run;
use crate::access::{Declared, Joins, OpenReduction};
use crate::data::{Mode, Rect};
use crate::error::Error;
use crate::group::{Group, GroupInner};
use crate::guard::Hold;
use crate::task::{
    Clauses, Label, Many, Repeated, TaskBuilder, Traits, free_task, new_repeated, record,
};

pub(crate) use self::node::{
    Node, begin, close, close_all, close_here, close_late, complete, home, pause,
};
pub(crate) use self::plan::Plan as RecordedPlan;

/// The tasks of one iteration, while they are declared. Arrays live for `'a`.
pub struct Iteration<'a> {
    recorded: RefCell<Recorded<'a>>,
}

#[derive(Default)]
struct Recorded<'a> {
    /// By array, operator and region.
    reductions: HashMap<(u64, TypeId, Rect), Arc<OpenReduction>>,
    sketch: Sketch,
    declared: Vec<Declared<'a>>,
    tasks: Vec<Task>,
    turn: usize,
}

/// A task without its accesses.
struct Task {
    traits: Traits,
    body: Box<dyn Repeated>,
    /// The step it is of, in the first iteration.
    turn: usize,
}

impl<'a> Iteration<'a> {
    fn add(
        &self,
        traits: Traits,
        refused: Option<&'static str>,
        clauses: &impl Clauses<'a>,
        body: Box<dyn Repeated>,
    ) -> Result<(), Error> {
        let mut accesses = Vec::with_capacity(clauses.count());
        clauses.for_each(|access| accesses.push(*access));
        accesses.iter().try_for_each(Declared::check_bounds)?;
        let lent = || accesses.iter().any(|access| access.lender().is_some());
        if let Some(what) = refused.or_else(|| lent().then_some("regions that were lent")) {
            let label = traits.label.text().to_owned();
            return Err(Error::Replayed { label, what });
        }
        let mut recorded = self.recorded.borrow_mut();
        for (nth, access) in accesses.iter().enumerate() {
            let operator = clauses.joins(nth).map(|joins| recorded.join(joins, access));
            recorded.sketch.add(access, operator);
        }
        recorded.sketch.counts.push(accesses.len());
        recorded.declared.extend(accesses);
        let turn = recorded.turn;
        recorded.tasks.push(Task { traits, body, turn });
        Ok(())
    }
}

impl Recorded<'_> {
    /// Has an access join its reduction, for all steps. Returns the operator.
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
    /// spawned anew each time. They are declared once, with [`TaskBuilder::repeat`],
    /// [`TaskBuilder::repeat_borrowed`] or [`TaskBuilder::repeat_async`]; their bodies get the number
    /// of the step. They are tasks of this group, whichever declares them.
    ///
    /// ```
    /// # use talpf_runtime::{Array, Config, Error, Runtime};
    /// # let runtime = Runtime::new(Config::default())?;
    /// let sums = Array::new(&runtime, vec![0u64; 8], 1)?;
    /// runtime.iterate(100, |iteration| {
    ///     for tile in 0..sums.tiles() {
    ///         let task = runtime.task("add").inout(&sums.tile(tile));
    ///         task.repeat(iteration, |step, mut sum| sum[0] += step as u64)?;
    ///     }
    ///     Ok::<(), Error>(())
    /// })?;
    /// let total = runtime.task("total").input(&sums.all()).run(|sums| sums.iter().sum::<u64>())?;
    /// assert_eq!(runtime.block_on(total)??, 8 * 4950);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// **Ordering**: within the steps as by discovery, except that a task also waits for itself in
    /// the step before and that commutative tasks keep their order. The first step begins when
    /// nothing that was spawned before uses a tile of the graph any more; what is spawned later
    /// waits, tile by tile, for the last step to be done with what it uses.
    /// **Scheduling**: other tasks may run inside the spawn, so hold no lock that they take (see
    /// [`Config::throttle`](crate::Config::throttle)).
    /// **Completion**: returns at once. A task that fails stops the steps, and the data that they
    /// write is spoilt (R4).
    /// **Errors**: those of `declare`; accesses of one task that conflict with each other; a
    /// runtime that has shut down. Nothing runs then.
    /// **Cost**: memory for one iteration, however many steps there are.
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

    /// As [`Group::iterate`], for arrays that take turns: an iteration of the graph is several
    /// steps. `declare` is called for each of them, with its number from 0 to `turns`; step `s` then
    /// runs the tasks of turn `s % turns`.
    ///
    /// ```
    /// # use talpf_runtime::{Array, Config, Error, Runtime};
    /// # let runtime = Runtime::new(Config::default())?;
    /// let lines = [Array::new(&runtime, vec![1.0; 8], 8)?, Array::new(&runtime, vec![0.0; 8], 8)?];
    /// runtime.iterate_unrolled(5, 2, |iteration, turn| {
    ///     let [old, new] = [&lines[turn], &lines[1 - turn]];
    ///     let task = runtime.task("halve").input(&old.all()).output(&new.all());
    ///     task.repeat(iteration, |_step, old, mut new| {
    ///         new.iter_mut().zip(&*old).for_each(|(new, old)| *new = old / 2.0);
    ///     })
    /// })?;
    /// let last = runtime.task("read").input(&lines[1].all()).run(|line| line[0])?;
    /// assert_eq!(runtime.block_on(last)??, 1.0 / 32.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// **Errors**: also no turns.
    pub fn iterate_unrolled<'a, E: From<Error>>(
        &self,
        steps: usize,
        turns: usize,
        mut declare: impl FnMut(&Iteration<'a>, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        if turns == 0 {
            return Err(Error::Size { what: "number of turns", value: 0, limit: 1 }.into());
        }
        let iteration = Iteration { recorded: RefCell::default() };
        for turn in 0..turns.min(steps) {
            iteration.recorded.borrow_mut().turn = turn;
            declare(&iteration, turn)?;
        }
        if iteration.recorded.borrow().tasks.is_empty() {
            return Ok(());
        }
        Ok(spawn(self.inner(), iteration.recorded.into_inner(), (steps, turns))?)
    }
}

/// Spawns the task that holds the tiles of a graph and lets it run.
fn spawn(
    group: &Arc<GroupInner>,
    recorded: Recorded<'_>,
    (steps, turns): (usize, usize),
) -> Result<(), Error> {
    let Recorded { sketch, declared, tasks, .. } = recorded;
    let label = Label::new("iterate");
    declared.iter().try_for_each(|declared| declared.check_runtime(group, label))?;
    let plan = plan_of(group, sketch, &declared, &tasks)?;
    let lengths = tasks.chunk_by(|one, next| one.turn == next.turn).map(<[_]>::len);
    let label = Label::new("iterate");
    declared.iter().try_for_each(|declared| declared.check_runtime(group, label))?;
    let is_inline = |task: usize| tasks[task].traits.marks().is_inline();
    let workers = group.shared.workers();
    let homes = homes(lengths, is_inline, |task| plan.successors_of(task), workers);
    let mut nodes = Vec::with_capacity(tasks.len());
    let mut first = 0;
    for (index, Task { traits, body, turn }) in tasks.into_iter().enumerate() {
        let end = first + plan.counts()[index];
        let new = new_repeated(group, &traits, &declared[first..end]);
        let task = match new {
            Ok(task) => task,
            Err(full) => {
                nodes.iter().for_each(|node: &Node| free_task(node.task));
                return Err(full);
            }
        };
        // For reports.
        record(task).pending.set(plan.within[index] + plan.across[index]);
        let last_step = steps - 1 - (steps - 1 - turn) % turns;
        let home = group.affinity().map(|there| there as u32).or(homes[index]);
        let home = home.filter(|_| !traits.marks().is_inline());
        nodes.push(Node::new(task, body, &plan, (index, first), (turn, last_step), home));
        first = end;
    }
    let tiles = plan.tiles.iter().map(|tile| {
        let mode = if tile.writes { Mode::InOut } else { Mode::In };
        declared[tile.access].tile(tile.number, mode)
    });
    let clause = Many::<Hold>::new(tiles.collect());
    let run = Run::new(nodes.into(), plan, (steps, turns));
    TaskBuilder::new(group, "iterate").with(clause).spawn(move |holds| run.start(holds))
}

/// The plan of a graph: that of the graph before, if it has the same accesses.
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
