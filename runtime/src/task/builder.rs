//! The declaration of a task: accesses, clauses, body.

use std::future::Future;
use std::sync::Arc;

use super::body::{AsyncBody, Call};
use super::clause::{Clause, IntoAccess, Many, One};
use super::handle::{JoinHandle, promise};
use super::ready::{Action, Actions, Before, CommonAction, OnReady, Ready};
use super::spawn::spawn;
use crate::data::{Mode, Region};
use crate::dependency::{Clauses, Declared, Joins};
use crate::error::Error;
use crate::group::GroupInner;
use crate::guard::{Commutative, Concurrent, Cursor, In, InOut, Out};
use crate::record::{Label, Nest, RecordId, Role, Traits};

/// The declaration of a task. Its accesses become the parameters of the body, in this order: at
/// most eight, of which each may be a `Vec` for many accesses of one kind.
///
/// ```
/// # use talpf_runtime::{Array, Config, Runtime};
/// # let runtime = Runtime::new(Config::default())?;
/// let a = Array::new(&runtime, vec![1.0; 8], 4)?;
/// let b = Array::new(&runtime, vec![0.0; 8], 4)?;
/// runtime.task("copy").input(&a.region(..)).output(&b.region(..)).spawn(|a, mut b| {
///     b.copy_from_slice(&a);
/// })?;
/// runtime.wait_blocking()?;
/// # Ok::<(), talpf_runtime::Error>(())
/// ```
///
/// A task that a group or its [`Children`](crate::Children) declare runs [`Once`]. One that is
/// declared in a [`Scope`](crate::Scope), such as an [`Iteration`](crate::Iteration), may run again
/// ([`Each`](crate::Each)), and its body is called by reference.
#[must_use = "a task exists once it is spawned"]
pub struct TaskBuilder<'a, C = (), A = (), S = Once> {
    group: &'a Arc<GroupInner>,
    nest: Option<&'a Arc<Nest>>,
    traits: Traits,
    clauses: C,
    actions: A,
    runs: S,
}

/// Said of a task that runs once: its body is an `FnOnce`.
#[derive(Clone, Copy, Debug)]
pub struct Once;

impl<'a> TaskBuilder<'a> {
    #[inline]
    pub(crate) fn new(group: &'a Arc<GroupInner>, label: &'static str) -> Self {
        let traits = Traits::new(Label::new(label), Role::Member);
        TaskBuilder { group, nest: None, traits, clauses: (), actions: (), runs: Once }
    }
}

impl<S: Copy> TaskBuilder<'_, (), (), S> {
    /// Returns a copy of a declaration without clauses.
    pub(super) fn again(&self) -> Self {
        TaskBuilder { ..*self }
    }
}

impl<'a, C, A, S> TaskBuilder<'a, C, A, S> {
    /// Sets the priority: ready tasks of higher priority run first. The default is 0. Priorities
    /// beyond 2^25 in either direction count as that.
    #[inline]
    pub fn priority(mut self, priority: i32) -> Self {
        self.traits.set_urgency(self.traits.urgency().with_priority(priority));
        self
    }

    /// Sets the approximate time that the body takes. Of ready tasks with the same priority the
    /// costlier ones run first, by orders of magnitude (to the base of 2), so that no long task is
    /// left for the end; those without a cost run last.
    ///
    /// **Units**: nanoseconds. **Cost**: the task goes through the queue of priorities.
    #[inline]
    pub fn cost(mut self, cost_ns: u64) -> Self {
        self.traits.set_urgency(self.traits.urgency().with_cost(cost_ns));
        self
    }

    /// Declares what the body does, as a kind of work and its amount, for runs in virtual time
    /// ([`Config::virtual_time`](crate::Config::virtual_time)): the body takes the time that the
    /// costs of the virtual machine give for it, and without this call none. In real time it does
    /// nothing.
    ///
    /// **Cost**: a branch in real time.
    #[inline]
    pub fn work(mut self, kind: &str, amount: u64) -> Self {
        if let Some(virtual_time) = &self.group.shared.virtual_time {
            self.traits.set_virtual_ns(virtual_time.cost_ns(kind, amount));
        }
        self
    }

    /// Runs the body where the task becomes ready: at once inside the spawn if nothing holds it
    /// back, otherwise as the next one on the worker that makes it ready (of several, the last
    /// comes next). For bodies that take less time than a queue. A thread that is no worker of the task's
    /// group queues it as any other. A body that runs inside a spawn
    /// has the stack of the spawner: a recursion of such tasks goes as deep as one of calls.
    #[inline]
    pub fn inline(mut self) -> Self {
        self.traits.set_inline();
        self
    }

    /// Makes the task [`TaskBuilder::inline`] unless `condition` holds: the `if` clause of OmpSs-2
    /// and OpenMP, for tasks that are not worth a queue.
    #[inline]
    pub fn deferred_if(self, condition: bool) -> Self {
        if condition { self } else { self.inline() }
    }

    /// Makes the task final if `condition` holds: its [`Children`](crate::Children), and theirs,
    /// run as [`TaskBuilder::inline`]. For the depth at which a recursion is no longer worth tasks.
    #[inline]
    pub fn final_if(mut self, condition: bool) -> Self {
        if condition {
            self.traits.set_final();
        }
        self
    }

    /// Declares that the task exchanges data with something that the runtime does not see, another
    /// process for instance. Drawings of a [`TaskGraph`](crate::TaskGraph) show that.
    #[inline]
    pub fn communicates(mut self) -> Self {
        self.traits.set_communicates();
        self
    }

    /// Keeps other tasks from running inside the spawn, however many are outstanding
    /// ([`Config::throttle`](crate::Config::throttle)): for spawners that hold a lock, or that
    /// await [`Group::room`](crate::Group::room) instead. A task that is [`TaskBuilder::inline`]
    /// runs inside its spawn nevertheless.
    #[inline]
    pub fn unthrottled(mut self) -> Self {
        self.traits.set_unthrottled();
        self
    }

    /// Makes the task a child.
    pub(super) fn child_in(mut self, nest: &'a Arc<Nest>) -> Self {
        self.nest = Some(nest);
        self
    }

    /// Adds a clause.
    #[inline]
    pub(crate) fn with<X>(self, clause: X) -> TaskBuilder<'a, C::Longer, A, S>
    where
        C: Append<X>,
    {
        let TaskBuilder { group, nest, traits, clauses, actions, runs } = self;
        TaskBuilder { group, nest, traits, clauses: clauses.append(clause), actions, runs }
    }

    /// Changes how often the task runs.
    pub(crate) fn running<R>(self, runs: R) -> TaskBuilder<'a, C, A, R> {
        let TaskBuilder { group, nest, traits, clauses, actions, .. } = self;
        TaskBuilder { group, nest, traits, clauses, actions, runs }
    }

    /// Returns how often the task runs.
    pub(crate) fn runs(&self) -> S
    where
        S: Copy,
    {
        self.runs
    }

    /// Returns the number of workers that run the tasks of the group.
    pub(super) fn workers(&self) -> usize {
        self.group.set.workers().len()
    }

    /// Returns the traits and the clauses.
    pub(crate) fn into_parts(self) -> (Traits, C) {
        (self.traits, self.clauses)
    }

    pub(crate) fn role(mut self, role: Role) -> Self {
        self.traits.set_role(role);
        self
    }
}

impl<'a, C, A: Before, S> TaskBuilder<'a, C, A, S> {
    /// Adds an action that runs when nothing earlier holds the task back, before the task takes
    /// tile locks and is queued. Actions run in the order in which they are added.
    ///
    /// An action may change the task's priority and cost, hold the task back until something else
    /// has happened ([`Ready::hold_back`]), and spawn tasks. It runs on the thread that ends the
    /// task's waiting, or inside the spawn: so it must be short and must not wait for anything,
    /// including a lock that is held where guards drop. It has none of the task's guards, and is in
    /// no task itself. If it panics the task fails and does not run. Actions of a task that has
    /// failed or is cancelled before do not run.
    ///
    /// **Cost**: an allocation. **Source**: `onready` of OmpSs-2.
    pub fn on_ready(
        self,
        action: impl FnOnce(&Ready) + Send + 'static,
    ) -> TaskBuilder<'a, C, Actions, S> {
        self.acting(Action::Own(Box::new(action)))
    }

    /// Adds an action as [`TaskBuilder::on_ready`] does, which several tasks may have in common.
    ///
    /// **Cost**: no allocation for the first action of a task.
    pub fn on_ready_of(self, action: Arc<dyn OnReady>) -> TaskBuilder<'a, C, Actions, S> {
        self.acting(Action::Common(CommonAction::new(action)))
    }

    #[inline]
    fn acting(self, action: Action) -> TaskBuilder<'a, C, Actions, S> {
        let TaskBuilder { group, nest, traits, clauses, actions, runs } = self;
        TaskBuilder { group, nest, traits, clauses, actions: actions.and(action), runs }
    }

    /// Returns a feature of the declaration that a replayed task cannot have.
    pub(crate) fn not_to_repeat(&self) -> Option<&'static str> {
        A::ACTS.then_some("actions that come before its body")
    }

    /// Sets the priority as [`TaskBuilder::priority`] does, but when the task becomes ready: an
    /// action of [`TaskBuilder::on_ready`].
    pub fn priority_with(
        self,
        priority: impl FnOnce() -> i32 + Send + 'static,
    ) -> TaskBuilder<'a, C, Actions, S> {
        self.on_ready(move |ready| ready.set_priority(priority()))
    }

    /// Sets the cost as [`TaskBuilder::cost`] does, but when the task becomes ready: an action of
    /// [`TaskBuilder::on_ready`].
    pub fn cost_with(
        self,
        cost_ns: impl FnOnce() -> u64 + Send + 'static,
    ) -> TaskBuilder<'a, C, Actions, S> {
        self.on_ready(move |ready| ready.set_cost(cost_ns()))
    }
}

/// The clause of regions `X` whose guards are `G`.
pub(crate) type AccessClause<'r, X, G> = <X as IntoAccess<'r>>::Clause<One<'r, G>, Many<'r, G>>;

/// A tuple of clauses to which one can be added.
pub trait Append<X> {
    /// The longer tuple.
    type Longer;
    /// Adds `clause` at the end.
    fn append(self, clause: X) -> Self::Longer;
}

macro_rules! access_clauses {
    ($($(#[$doc:meta])* $name:ident: $mode:expr => $guard:ident;)*) => {
        impl<'a, C, A, S> TaskBuilder<'a, C, A, S> {$(
            $(#[$doc])*
            #[inline]
            pub fn $name<'r, X: IntoAccess<'r>>(
                self,
                regions: X,
            ) -> TaskBuilder<'a, C::Longer, A, S>
            where
                C: Append<AccessClause<'r, X, $guard<X::Element, X::Dim>>>,
            {
                let one = |region: &Region<'r, _, _>| One::new(Declared::new(region, $mode));
                self.with(regions.into_clause(one, Many::of))
            }
        )*}
    };
}

access_clauses! {
    /// Declares that the task reads a region, or several.
    input: Mode::In => In;
    /// Declares that the task overwrites a region, or several, whose previous contents may or may
    /// not be seen.
    output: Mode::Out => Out;
    /// Declares that the task reads and writes a region, or several.
    inout: Mode::InOut => InOut;
    /// Declares that the task updates a region, or several, through shared references, possibly at
    /// the same time as other concurrent tasks; all others are ordered before or after it. The
    /// bodies must not let the result depend on the order.
    concurrent: Mode::Concurrent => Concurrent;
    /// Declares that the task reads and writes a region, or several, alone, in any order with other
    /// commutative tasks; all others are ordered before or after it. The bodies must not let the
    /// result depend on the order. Commutative tasks that touch one tile exclude each other, even
    /// if they share no element of it; none of them occupies a worker while it waits.
    commutative: Mode::Commutative => Commutative;
}

macro_rules! bodies {
    ($($clause:ident)*) => {
        impl<X $(, $clause)*> Append<X> for ($($clause,)*) {
            type Longer = ($($clause,)* X,);
            #[inline]
            fn append(self, clause: X) -> Self::Longer {
                #[allow(non_snake_case, reason = "clauses are named after their types")]
                let ($($clause,)*) = self;
                ($($clause,)* clause,)
            }
        }

        impl<'r $(, $clause: Clause<'r>)*> Clauses<'r> for ($($clause,)*) {
            #[inline]
            fn count(&self) -> usize {
                let ($($clause,)*) = self;
                0 $(+ $clause.count())*
            }

            #[inline]
            fn for_each(&self, mut each: impl FnMut(&Declared<'r>)) {
                let ($($clause,)*) = self;
                $($clause.declare(&mut each);)*
                let _ = &mut each;
            }

            fn visit(&self, each: &mut dyn FnMut(&Declared<'r>)) {
                self.for_each(each);
            }

            fn joins(&self, nth: usize) -> Option<&dyn Joins> {
                let ($($clause,)*) = self;
                let mut before = 0;
                $(
                    if nth < before + $clause.count() {
                        return $clause.joins(nth - before);
                    }
                    before += $clause.count();
                )*
                let _ = (nth, before);
                None
            }
        }

        impl<'r $(, $clause: Clause<'r>)*, Acts: Before> TaskBuilder<'_, ($($clause,)*), Acts> {
            /// Spawns the task with a closure that gets its guards.
            ///
            /// **Completion**: returns at once. **Scheduling**: other tasks may run inside the
            /// spawn, so hold no lock that they take (see
            /// [`Config::throttle`](crate::Config::throttle)). **Errors**: a region outside its
            /// array, of another runtime, or one that is not lent to a child; accesses of this task
            /// that conflict with each other; a runtime that shuts down, unless the spawner is a
            /// task of it that is not complete.
            #[inline]
            pub fn spawn<Fun>(self, body: Fun) -> Result<(), Error>
            where
                Fun: FnOnce($($clause::Guard),*) + Send + 'static,
            {
                let shapes = self.shapes();
                let call = move |task: RecordId| {
                    let ($($clause,)*) = Self::guards(shapes, task);
                    body($($clause),*);
                };
                let body = self.actions.before(Call(Some(call)));
                spawn(self.group, self.nest, self.traits, &self.clauses, body)
            }

            /// Spawns the task with an async closure that gets its guards.
            ///
            /// **Completion**: returns at once. **Scheduling**: other tasks may run inside the
            /// spawn, so hold no lock that they take (see
            /// [`Config::throttle`](crate::Config::throttle)).
            /// **Errors**: those of [`TaskBuilder::spawn`].
            pub fn spawn_async<Fun, Fut>(self, body: Fun) -> Result<(), Error>
            where
                Fun: FnOnce($($clause::Guard),*) -> Fut + Send + 'static,
                Fut: Future<Output = ()> + Send + 'static,
            {
                let shapes = self.shapes();
                let start = move |task: RecordId| {
                    let ($($clause,)*) = Self::guards(shapes, task);
                    body($($clause),*)
                };
                let body = self.actions.before(AsyncBody::Start(Some(start)));
                spawn(self.group, self.nest, self.traits, &self.clauses, body)
            }

            /// Spawns the task as [`TaskBuilder::spawn`] does. The handle gives the value that the
            /// body returns: a result, or the guards themselves.
            ///
            /// **Scheduling**: other tasks may run inside the spawn, so hold no lock that they take
            /// (see [`Config::throttle`](crate::Config::throttle)).
            pub fn run<Fun, R>(self, body: Fun) -> Result<JoinHandle<R>, Error>
            where
                Fun: FnOnce($($clause::Guard),*) -> R + Send + 'static,
                R: Send + 'static,
            {
                let (promise, handle) = promise(self.group);
                self.spawn(move |$($clause),*| promise.keep(body($($clause),*)))?;
                Ok(handle)
            }

            /// Spawns the task as [`TaskBuilder::spawn_async`] does. The handle gives the value
            /// that the body returns.
            ///
            /// **Scheduling**: other tasks may run inside the spawn, so hold no lock that they take
            /// (see [`Config::throttle`](crate::Config::throttle)).
            pub fn run_async<Fun, Fut>(self, body: Fun) -> Result<JoinHandle<Fut::Output>, Error>
            where
                Fun: FnOnce($($clause::Guard),*) -> Fut + Send + 'static,
                Fut: Future<Output: Send> + Send + 'static,
            {
                let (promise, handle) = promise(self.group);
                self.spawn_async(move |$($clause),*| {
                    let future = body($($clause),*);
                    async move { promise.keep(future.await) }
                })?;
                Ok(handle)
            }
        }

        impl<'r $(, $clause: Clause<'r>)*, Acts, Runs> TaskBuilder<'_, ($($clause,)*), Acts, Runs> {
            /// Makes the parameters of the body of a task that starts.
            #[inline(always)]
            pub(crate) fn guards(
                shapes: ($($clause::Shape,)*),
                task: RecordId,
            ) -> ($($clause::Guard,)*) {
                let mut cursor = Cursor::new(task);
                let ($($clause,)*) = shapes;
                $(let mut $clause = $clause::guard($clause, &mut cursor);)*
                $($clause::fill(&mut $clause);)*
                let _ = &mut cursor;
                ($($clause,)*)
            }

            #[inline]
            pub(crate) fn shapes(&self) -> ($($clause::Shape,)*) {
                let ($($clause,)*) = &self.clauses;
                ($($clause.shape(),)*)
            }
        }
    };
}

#[allow(non_snake_case, reason = "the macro names values after their types")]
#[allow(clippy::unused_unit, reason = "the tuple of no clauses is the unit")]
#[allow(unused_mut, reason = "and counts none")]
mod arities {
    use super::*;

    bodies!();
    bodies!(A);
    bodies!(A B);
    bodies!(A B C);
    bodies!(A B C D);
    bodies!(A B C D E);
    bodies!(A B C D E F);
    bodies!(A B C D E F G);
    bodies!(A B C D E F G H);
}
