//! Scopes of one-sided operations.

use bytemuck::Pod;
use talpf_runtime::{Each, Region, Scope, TaskBuilder};

use crate::context::Context;
use crate::error::Error;
use crate::iteration::Iteration;
use crate::lane::Lane;
use crate::slot::{KeptRemote, RemoteRegion};
use crate::sync::{EachStep, SyncBuilder, SyncMode};

/// A [`Context`], a [`Lane`] or an [`Iteration`]: a program that is generic over its scope declares
/// the tasks, operations and syncs of a step once, to be spawned anew or to be replayed. Arrays live
/// for `'r`.
///
/// ```
/// use talpf::{Config, Context, Error, MemorySlot, OneSided, SyncMode, exec};
/// use talpf_runtime::Array;
///
/// /// Passes the number of every rank on to the next rank.
/// fn rotate<'r>(
///     scope: &impl OneSided<'r>,
///     (ctx, slot): (&Context, &MemorySlot<u32>),
///     (number, inbox): (&'r Array<u32>, &'r Array<u32>),
/// ) -> Result<(), Error> {
///     let next = ctx.peer((ctx.rank().0 + 1) % ctx.size())?;
///     scope.put(&number.all(), slot.at(next, 0))?;
///     scope.sync(SyncMode::CACHED).window(&inbox.all()).spawn()?;
///     let copy = scope.task("copy").input(&inbox.all()).output(&number.all());
///     Ok(copy.spawn(|inbox, mut number| number[0] = inbox[0])?)
/// }
///
/// let numbers = exec(Config { ranks: 3, ..Config::default() }, async |ctx| {
///     let number = Array::new(ctx.group(), vec![ctx.rank().0], 1)?;
///     let inbox = Array::new(ctx.group(), vec![0], 1)?;
///     let slot = ctx.register_global(&inbox).await?;
///     rotate(&ctx, (&ctx, &slot), (&number, &inbox))?;
///     ctx.iterate(4, |step| rotate(step, (&ctx, &slot), (&number, &inbox)))?;
///     ctx.group().wait().await?;
///     let read = ctx.group().task("read").input(&number.all());
///     Ok::<_, Error>(read.run(|number| number[0])?.await?)
/// })?;
/// assert_eq!(numbers, [1, 2, 0]);
/// # Ok::<(), Error>(())
/// ```
pub trait OneSided<'r>: Scope<'r> {
    /// Returns the lane that operations are of, spawned or in a step of an iteration.
    fn lane_scope(&self) -> LaneScope<'_, 'r>;

    /// Returns a scope that declares where this one does, with operations on `lane`.
    ///
    /// **Errors**: a lane of another rank or run; in an iteration, as
    /// [`Token::new`](talpf_runtime::Token::new).
    fn on<'s>(&'s self, lane: &'r Lane) -> Result<LaneScope<'s, 'r>, Error>
    where
        'r: 's,
    {
        match self.lane_scope() {
            LaneScope::Spawned(own) => {
                own.at.check_same_rank(&lane.at)?;
                Ok(LaneScope::Spawned(lane))
            }
            LaneScope::Replayed(step) => Ok(LaneScope::Replayed(step.on(lane)?)),
        }
    }

    /// Declares a task that puts, as [`Lane::put`].
    fn put<T, D>(&self, from: &Region<'r, T, D>, to: RemoteRegion<'_, T>) -> Result<(), Error>
    where
        T: Pod + Send + Sync,
        D: Send + 'static,
    {
        let step = match self.lane_scope() {
            LaneScope::Spawned(lane) => return lane.put(from, to),
            LaneScope::Replayed(step) => step,
        };
        let (lane, to) = (step.lane.clone(), KeptRemote::new(&to));
        Ok(step.task_of_round("put").concurrent(&step.order()).input(from).spawn(
            move |_order, from| {
                drop(lane.round_of_iteration().put(from, to.region()));
            },
        )?)
    }

    /// Declares a task that gets, as [`Lane::get`].
    fn get<T, D>(&self, from: RemoteRegion<'_, T>, to: &Region<'r, T, D>) -> Result<(), Error>
    where
        T: Pod + Send + Sync,
        D: Send + 'static,
    {
        let step = match self.lane_scope() {
            LaneScope::Spawned(lane) => return lane.get(from, to),
            LaneScope::Replayed(step) => step,
        };
        let (lane, from) = (step.lane.clone(), KeptRemote::new(&from));
        Ok(step.task_of_round("get").concurrent(&step.order()).output(to).spawn(
            move |_order, to| {
                drop(lane.round_of_iteration().get(from.region(), to));
            },
        )?)
    }

    /// Declares a task that adds, as [`Lane::fetch_and_add`].
    fn fetch_and_add(
        &self,
        target: RemoteRegion<'_, u64>,
        add: u64,
        result: &Region<'r, u64>,
    ) -> Result<(), Error> {
        let step = match self.lane_scope() {
            LaneScope::Spawned(lane) => return lane.fetch_and_add(target, add, result),
            LaneScope::Replayed(step) => step,
        };
        let (lane, target) = (step.lane.clone(), KeptRemote::new(&target));
        Ok(step.task_of_round("fetch_and_add").concurrent(&step.order()).output(result).spawn(
            move |_order, result| {
                drop(lane.round_of_iteration().fetch_and_add(target.region(), add, result));
            },
        )?)
    }

    /// Declares a task that compares and swaps, as [`Lane::compare_and_swap`].
    fn compare_and_swap(
        &self,
        target: RemoteRegion<'_, u64>,
        compare: u64,
        swap: u64,
        result: &Region<'r, u64>,
    ) -> Result<(), Error> {
        let step = match self.lane_scope() {
            LaneScope::Spawned(lane) => {
                return lane.compare_and_swap(target, compare, swap, result);
            }
            LaneScope::Replayed(step) => step,
        };
        let (lane, target) = (step.lane.clone(), KeptRemote::new(&target));
        let task = step.task_of_round("compare_and_swap").concurrent(&step.order()).output(result);
        Ok(task.spawn(move |_order, result| {
            let (round, target) = (lane.round_of_iteration(), target.region());
            drop(round.compare_and_swap(target, compare, swap, result));
        })?)
    }

    /// Declares a sync, as [`Lane::sync`], that is spawned once or in every step.
    fn sync(&self, mode: SyncMode) -> SyncBuilder<'_, 'r, EachStep<'_, 'r>> {
        match self.lane_scope() {
            LaneScope::Spawned(lane) => lane.sync(mode).running(EachStep(None)),
            LaneScope::Replayed(step) => {
                SyncBuilder::new(step.lane, mode).running(EachStep(Some(step)))
            }
        }
    }
}

/// A lane as a [`OneSided`] scope, whose operations are spawned or replayed: one type for programs
/// that decide at run time.
pub enum LaneScope<'s, 'r> {
    /// Operations are spawned on a lane.
    Spawned(&'s Lane),
    /// Operations are replayed in a step of an iteration, on one of its lanes.
    Replayed(Iteration<'s, 'r>),
}

impl<'r> OneSided<'r> for LaneScope<'_, 'r> {
    fn lane_scope(&self) -> LaneScope<'_, 'r> {
        match self {
            LaneScope::Spawned(lane) => LaneScope::Spawned(lane),
            LaneScope::Replayed(step) => LaneScope::Replayed(*step),
        }
    }
}

impl<'r> Scope<'r> for LaneScope<'_, 'r> {
    fn task(&self, label: &'static str) -> TaskBuilder<'_, (), (), Each<'_, 'r>> {
        match self {
            LaneScope::Spawned(lane) => Scope::task(*lane, label),
            LaneScope::Replayed(step) => Scope::task(step, label),
        }
    }
}

impl<'r> OneSided<'r> for Lane {
    fn lane_scope(&self) -> LaneScope<'_, 'r> {
        LaneScope::Spawned(self)
    }
}

impl<'r> Scope<'r> for Lane {
    fn task(&self, label: &'static str) -> TaskBuilder<'_, (), (), Each<'_, 'r>> {
        Scope::task(self.group(), label)
    }
}

impl<'r> OneSided<'r> for Context {
    fn lane_scope(&self) -> LaneScope<'_, 'r> {
        LaneScope::Spawned(self)
    }
}

impl<'r> Scope<'r> for Context {
    fn task(&self, label: &'static str) -> TaskBuilder<'_, (), (), Each<'_, 'r>> {
        Scope::task(self.group(), label)
    }
}

impl<'r> OneSided<'r> for Iteration<'_, 'r> {
    fn lane_scope(&self) -> LaneScope<'_, 'r> {
        LaneScope::Replayed(*self)
    }
}

impl<'r> Scope<'r> for Iteration<'_, 'r> {
    fn task(&self, label: &'static str) -> TaskBuilder<'_, (), (), Each<'_, 'r>> {
        (**self).task(label)
    }
}
