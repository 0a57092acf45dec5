//! Bodies that may run once in every step of an iteration.
#![allow(unsafe_code, reason = "says which accesses are given up")]

use std::future::Future;

use super::{Iteration, close_all};
use crate::error::Error;
use crate::guard::Cursor;
use crate::record::{RecordId, record};
use crate::task::{Before, Clause, Once, Repeated, TaskBuilder, repeated, repeated_async};

/// Said of a task that may run in each step of an iteration: its body is an `Fn`.
#[derive(Clone, Copy)]
pub struct Each<'a, 'r>(pub(crate) Option<&'a Iteration<'r>>);

macro_rules! bodies {
    ($($clause:ident)*) => {
        impl<'r $(, $clause: Clause<'r>)*, Acts: Before>
            TaskBuilder<'_, ($($clause,)*), Acts, Each<'_, 'r>>
        {
            /// Spawns the task, or adds it to the iteration, with a closure that gets its guards.
            ///
            /// **Completion**: returns at once. **Scheduling**: as [`TaskBuilder::spawn`].
            /// **Errors**: in an iteration a region outside its array, regions that were lent, and
            /// actions of [`TaskBuilder::on_ready`] (functions for priority and cost are such, too).
            /// Otherwise those of [`TaskBuilder::spawn`].
            #[inline]
            pub fn spawn<Fun>(self, body: Fun) -> Result<(), Error>
            where
                Fun: Fn($($clause::Guard),*) + Send + Sync + 'static,
            {
                let Each(Some(iteration)) = self.runs() else {
                    return self.running(Once).spawn(body);
                };
                let shapes = self.shapes();
                let call = move |task: RecordId| {
                    let ($($clause,)*) = Self::guards(shapes.clone(), task);
                    body($($clause),*);
                };
                self.add_to(iteration, repeated(call))
            }

            /// Spawns the task as [`TaskBuilder::spawn`] does, with a body that borrows its guards:
            /// in an iteration its regions are released together when it returns, at the cost of
            /// one.
            pub fn spawn_borrowed<Fun>(self, body: Fun) -> Result<(), Error>
            where
                Fun: Fn($(&mut $clause::Guard),*) + Send + Sync + 'static,
            {
                let Each(Some(iteration)) = self.runs() else {
                    return self.running(Once).spawn(move |$(mut $clause),*| {
                        body($(&mut $clause),*);
                    });
                };
                let shapes = self.shapes();
                let call = move |task: RecordId| {
                    let ($(mut $clause,)*) = Self::guards(shapes.clone(), task);
                    body($(&mut $clause),*);
                    // The body may have put other guards in their place.
                    let mut cursor = Cursor::new(task);
                    let are_whole = $($clause::is_whole(&$clause, &mut cursor) &&)* true;
                    if !are_whole || cursor.has_more() {
                        return;
                    }
                    // SAFETY: the guards are those of all accesses of the task, each of its own,
                    // and are forgotten if this closes these.
                    if unsafe { close_all(record(task)) } {
                        $($clause::forget($clause);)*
                    }
                };
                self.add_to(iteration, repeated(call))
            }

            /// Spawns the task as [`TaskBuilder::spawn`] does, with an async closure.
            ///
            /// **Cost**: in an iteration, an allocation in every step if the future is larger than
            /// 128 bytes.
            pub fn spawn_async<Fun, Fut>(self, body: Fun) -> Result<(), Error>
            where
                Fun: Fn($($clause::Guard),*) -> Fut + Send + Sync + 'static,
                Fut: Future<Output = ()> + Send + 'static,
            {
                let Each(Some(iteration)) = self.runs() else {
                    return self.running(Once).spawn_async(body);
                };
                let shapes = self.shapes();
                let start = move |task: RecordId| {
                    let ($($clause,)*) = Self::guards(shapes.clone(), task);
                    body($($clause),*)
                };
                self.add_to(iteration, repeated_async(start))
            }

            /// Adds the task with its body to an iteration.
            fn add_to(
                self,
                iteration: &Iteration<'r>,
                body: Box<dyn Repeated>,
            ) -> Result<(), Error> {
                let refused = self.not_to_repeat();
                let (traits, clauses) = self.into_parts();
                iteration.add(traits, refused, &clauses, body)
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
