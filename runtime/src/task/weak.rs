//! Weak clauses: regions that a task lends its children without waiting for them.

use super::TaskBuilder;
use super::builder::Append;
use super::clause::{Many, One};
use crate::access::Declared;
use crate::data::{Mode, Region};
use crate::lend::Lend;

impl<'a, C, A, S> TaskBuilder<'a, C, A, S> {
    /// Declares that children of the task read parts of `region`; the task itself does not wait for
    /// it and cannot read it.
    pub fn weak_input<'r, T, D>(self, region: &Region<'r, T, D>) -> TaskBuilder<'a, C::Longer, A, S>
    where
        C: Append<One<'r, Lend<T, D>>>,
    {
        self.with(One::new(Declared::weak(region, Mode::In)))
    }

    /// Declares every one of `regions` as [`TaskBuilder::weak_input`] does; the body gets a `Vec`.
    pub fn weak_inputs<'r, T: 'r, D: 'r>(
        self,
        regions: impl IntoIterator<Item = Region<'r, T, D>>,
    ) -> TaskBuilder<'a, C::Longer, A, S>
    where
        C: Append<Many<'r, Lend<T, D>>>,
    {
        let declared = regions.into_iter().map(|region| Declared::weak(&region, Mode::In));
        self.with(Many::new(declared.collect()))
    }

    /// Declares that children of the task read and write parts of `region`; the task itself does
    /// not wait for it and cannot touch it.
    pub fn weak_inout<'r, T, D>(self, region: &Region<'r, T, D>) -> TaskBuilder<'a, C::Longer, A, S>
    where
        C: Append<One<'r, Lend<T, D>>>,
    {
        self.with(One::new(Declared::weak(region, Mode::InOut)))
    }

    /// Declares every one of `regions` as [`TaskBuilder::weak_inout`] does; the body gets a `Vec`.
    pub fn weak_inouts<'r, T: 'r, D: 'r>(
        self,
        regions: impl IntoIterator<Item = Region<'r, T, D>>,
    ) -> TaskBuilder<'a, C::Longer, A, S>
    where
        C: Append<Many<'r, Lend<T, D>>>,
    {
        let declared = regions.into_iter().map(|region| Declared::weak(&region, Mode::InOut));
        self.with(Many::new(declared.collect()))
    }
}
