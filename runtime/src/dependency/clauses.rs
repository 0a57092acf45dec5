//! The accesses of a new task, as its declaration gives them to the registration.

use std::any::TypeId;
use std::sync::Arc;

use super::{Declared, OpenReduction};

/// All clauses of a task.
///
/// Their type is that of the declaration. Functions that are called at some spawns only take them as an
/// object, so that they are compiled once and not for each declaration of a program.
pub(crate) trait Clauses<'a> {
    /// Returns the number of accesses.
    fn count(&self) -> usize;
    /// Calls `each` with the accesses, in order.
    fn for_each(&self, each: impl FnMut(&Declared<'a>))
    where
        Self: Sized;
    /// As `for_each`, of clauses that are an object.
    fn visit(&self, each: &mut dyn FnMut(&Declared<'a>));
    /// Returns the reduction that access number `nth` joins, if it is one.
    fn joins(&self, nth: usize) -> Option<&dyn Joins>;
}

/// A reduction access that is about to be registered.
pub trait Joins {
    /// Joins the open reduction over exactly its region if that has the same operator, or begins
    /// one. Returns the reduction.
    #[doc(hidden)]
    fn join(
        &self,
        open: Option<&Arc<OpenReduction>>,
        declared: &Declared<'_>,
    ) -> Arc<OpenReduction>;

    /// Notes that the task is replayed: it stays in the reduction, and folds a copy into it in
    /// every step.
    #[doc(hidden)]
    fn stay(&self);

    /// Returns an identifier of the operator among those on the same type of elements.
    #[doc(hidden)]
    fn operator(&self) -> TypeId;
}
