//! Regions of a clause: one, or several.

use crate::data::Region;

/// One region by reference, or an iterator of regions (a `Vec`, an array, an `Option`): what a
/// clause of a [`TaskBuilder`](crate::TaskBuilder) declares. The body gets one guard for a
/// reference, and a `Vec` of guards for an iterator.
///
/// ```
/// # use talpf_runtime::{Array, Config, Runtime};
/// # let runtime = Runtime::new(Config::default())?;
/// let parts = Array::new(&runtime, vec![1, 2, 3, 4], 1)?;
/// let sum = Array::new(&runtime, vec![0], 1)?;
/// let task = runtime.task("sum").input((0..parts.tiles()).map(|tile| parts.tile(tile)));
/// task.output(&sum.all()).spawn(|parts, mut sum| {
///     sum[0] = parts.iter().map(|part| part[0]).sum();
/// })?;
/// # runtime.wait_blocking()?;
/// # Ok::<(), talpf_runtime::Error>(())
/// ```
pub trait IntoAccess<'r> {
    /// Type of the elements.
    type Element;
    /// Dimension of the array.
    type Dim;
    /// The clause: `One` of a reference, `Many` of an iterator.
    type Clause<One, Many>;

    /// Makes the clause, with a function for a region and one for all of an iterator.
    #[doc(hidden)]
    fn into_clause<One, Many>(
        self,
        one: impl Fn(&Region<'r, Self::Element, Self::Dim>) -> One,
        many: impl FnOnce(Vec<One>) -> Many,
    ) -> Self::Clause<One, Many>;
}

impl<'r, T, D> IntoAccess<'r> for &Region<'r, T, D> {
    type Element = T;
    type Dim = D;
    type Clause<One, Many> = One;

    #[inline]
    fn into_clause<One, Many>(
        self,
        one: impl Fn(&Region<'r, T, D>) -> One,
        _many: impl FnOnce(Vec<One>) -> Many,
    ) -> One {
        one(self)
    }
}

impl<'r, T: 'r, D: 'r, I: IntoIterator<Item = Region<'r, T, D>>> IntoAccess<'r> for I {
    type Element = T;
    type Dim = D;
    type Clause<One, Many> = Many;

    fn into_clause<One, Many>(
        self,
        one: impl Fn(&Region<'r, T, D>) -> One,
        many: impl FnOnce(Vec<One>) -> Many,
    ) -> Many {
        many(self.into_iter().map(|region| one(&region)).collect())
    }
}
