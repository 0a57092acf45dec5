//! Bodies that run once in every iteration.
#![allow(unsafe_code, reason = "says which accesses are given up")]

use std::future::Future;

use super::{Iteration, close_all};
use crate::error::Error;
use crate::guard::Cursor;
use crate::task::{Before, Clause, RecordId, TaskBuilder, record, repeated, repeated_async};

macro_rules! bodies {
    ($($clause:ident)*) => {
        impl<'r $(, $clause: Clause<'r>)*, Acts: Before>
            TaskBuilder<'_, ($($clause,)*), Acts>
        {
            /// Adds the task to an iteration instead of spawning it. The body gets the number of
            /// the step and its guards, once in every step.
            ///
            /// The body may have [`Children`](crate::Children), which it spawns afresh in every
            /// step: the task is complete when they are, and the regions of its accesses that they
            /// use are released then, not before. A child that fails and poisons some of them stops
            /// the steps. Weak accesses are lent as those of other tasks, but waited for. Its
            /// reductions are combined with the region at the end of every step, under a lock.
            ///
            /// **Ordering**: of a task with more than 32 accesses, those from the 32nd on count as
            /// released when the last of them is: a task that waits for one of them waits for all.
            /// **Errors**: a region outside its array; a task that is a child, or has regions that
            /// were lent, or actions of [`TaskBuilder::on_ready`], also as functions for priority
            /// and cost.
            pub fn repeat<Fun>(self, iteration: &Iteration<'r>, body: Fun) -> Result<(), Error>
            where
                Fun: Fn(usize, $($clause::Guard),*) + Send + Sync + 'static,
            {
                let shapes = self.shapes();
                let call = move |task: RecordId, step: usize| {
                    let ($($clause,)*) = Self::guards(shapes.clone(), task);
                    body(step, $($clause),*);
                };
                let refused = self.not_to_repeat();
                let (traits, clauses) = self.into_parts();
                iteration.add(traits, refused, &clauses, repeated(call))
            }

            /// Adds the task as [`TaskBuilder::repeat`] does, with a body that borrows its guards:
            /// its regions are released together when it returns, at the cost of one.
            pub fn repeat_borrowed<Fun>(
                self,
                iteration: &Iteration<'r>,
                body: Fun,
            ) -> Result<(), Error>
            where
                Fun: Fn(usize, $(&mut $clause::Guard),*) + Send + Sync + 'static,
            {
                let shapes = self.shapes();
                let call = move |task: RecordId, step: usize| {
                    let ($(mut $clause,)*) = Self::guards(shapes.clone(), task);
                    body(step, $(&mut $clause),*);
                    // The body may have put other guards in their place.
                    let mut cursor = Cursor::new(task);
                    let are_whole = $($clause::is_whole(&$clause, &mut cursor) &&)* true;
                    if !are_whole || cursor.has_more() {
                        return;
                    }
                    // SAFETY: the guards are those of all accesses of the task, each of its own,
                    // and are forgotten if this closes the accesses.
                    if unsafe { close_all(record(task)) } {
                        $($clause::forget($clause);)*
                    }
                };
                let refused = self.not_to_repeat();
                let (traits, clauses) = self.into_parts();
                iteration.add(traits, refused, &clauses, repeated(call))
            }

            /// Adds the task as [`TaskBuilder::repeat`] does, with an async closure.
            ///
            /// **Cost**: an allocation in every step if the future is larger than 128 bytes.
            pub fn repeat_async<Fun, Fut>(
                self,
                iteration: &Iteration<'r>,
                body: Fun,
            ) -> Result<(), Error>
            where
                Fun: Fn(usize, $($clause::Guard),*) -> Fut + Send + Sync + 'static,
                Fut: Future<Output = ()> + Send + 'static,
            {
                let shapes = self.shapes();
                let start = move |task: RecordId, step: usize| {
                    let ($($clause,)*) = Self::guards(shapes.clone(), task);
                    body(step, $($clause),*)
                };
                let refused = self.not_to_repeat();
                let (traits, clauses) = self.into_parts();
                iteration.add(traits, refused, &clauses, repeated_async(start))
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
