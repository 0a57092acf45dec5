//! Weak clauses: regions that a task lends its children without waiting for them.

use super::TaskBuilder;
use super::builder::{AccessClause, Append};
use super::clause::{IntoAccess, Many, One};
use crate::data::{Mode, Region};
use crate::dependency::Declared;
use crate::lend::Lend;

impl<'a, C, A, S> TaskBuilder<'a, C, A, S> {
    /// Declares that children of the task read parts of a region, or of several; the task itself
    /// does not wait for it and cannot read it.
    pub fn weak_input<'r, X: IntoAccess<'r>>(self, regions: X) -> TaskBuilder<'a, C::Longer, A, S>
    where
        C: Append<AccessClause<'r, X, Lend<X::Element, X::Dim>>>,
    {
        let one = |region: &Region<'r, _, _>| One::new(Declared::weak(region, Mode::In));
        self.with(regions.into_clause(one, Many::of))
    }

    /// Declares that children of the task read and write parts of a region, or of several; the task
    /// itself does not wait for it and cannot touch it.
    pub fn weak_inout<'r, X: IntoAccess<'r>>(self, regions: X) -> TaskBuilder<'a, C::Longer, A, S>
    where
        C: Append<AccessClause<'r, X, Lend<X::Element, X::Dim>>>,
    {
        let one = |region: &Region<'r, _, _>| One::new(Declared::weak(region, Mode::InOut));
        self.with(regions.into_clause(one, Many::of))
    }
}
