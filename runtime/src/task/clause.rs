//! Clauses of a declaration: one access, or several of one kind. A task has a tuple of them.

use std::marker::PhantomData;
use std::mem;

use crate::data::{Invariant, Region};
use crate::dependency::{Declared, Joins};
use crate::guard::{Cursor, Guard};

/// The accesses of one clause and the parameter that the body gets for them. Programs name the
/// trait and do not implement it.
pub trait Clause<'a> {
    /// The parameter of the body.
    type Guard: Send + 'static;
    /// Data from which the parameter is made when the body starts, in every step of a replayed
    /// task.
    #[doc(hidden)]
    type Shape: Clone + Send + Sync + 'static;

    /// Returns the shape of this clause.
    #[doc(hidden)]
    fn shape(&self) -> Self::Shape;
    /// Returns the number of accesses.
    #[doc(hidden)]
    fn count(&self) -> usize;
    /// Calls `each` with the accesses, in order.
    #[doc(hidden)]
    fn declare(&self, each: &mut impl FnMut(&Declared<'a>));
    /// Returns the reduction that access number `nth` joins, if it is one.
    #[doc(hidden)]
    fn joins(&self, _nth: usize) -> Option<&dyn Joins> {
        None
    }
    /// Makes the parameter from the next accesses of the running task. Must not panic: guards that
    /// are not made yet would not be released.
    #[doc(hidden)]
    fn guard(shape: Self::Shape, cursor: &mut Cursor) -> Self::Guard;
    /// Completes the parameter once all are made.
    #[doc(hidden)]
    #[inline]
    fn fill(_guard: &mut Self::Guard) {}
    /// Returns `true` if the parameter is the only owner of the next accesses, as it was made: code
    /// that closes them may then forget it.
    #[doc(hidden)]
    #[inline]
    fn is_whole(_guard: &Self::Guard, _cursor: &mut Cursor) -> bool {
        false
    }
    /// Forgets a parameter that is whole.
    #[doc(hidden)]
    #[inline]
    fn forget(guard: Self::Guard) {
        drop(guard);
    }
}

/// Regions of a clause of a [`TaskBuilder`](crate::TaskBuilder): a reference to one region, for which
/// the body gets a guard, or an iterator of regions (a `Vec`, an array, an `Option`), for which it
/// gets a `Vec` of guards.
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

/// A clause of one access, handed to the body as a guard `G`.
pub struct One<'a, G> {
    declared: Declared<'a>,
    marker: Invariant<G>,
}

impl<'a, G> One<'a, G> {
    #[inline]
    pub(super) fn new(declared: Declared<'a>) -> Self {
        One { declared, marker: PhantomData }
    }
}

impl<'a, G: Guard> Clause<'a> for One<'a, G> {
    type Guard = G;
    type Shape = ();

    #[inline]
    fn shape(&self) {}

    #[inline]
    fn count(&self) -> usize {
        1
    }

    #[inline]
    fn declare(&self, each: &mut impl FnMut(&Declared<'a>)) {
        each(&self.declared);
    }

    #[inline]
    fn guard((): (), cursor: &mut Cursor) -> G {
        G::of_access(cursor.next_open())
    }

    #[inline]
    fn is_whole(guard: &G, cursor: &mut Cursor) -> bool {
        // A body may have moved the guard of the last access into a `Vec` before this one.
        cursor.has_more() && guard.is_only_of(cursor.next_access())
    }

    #[inline]
    fn forget(guard: G) {
        mem::forget(guard);
    }
}

/// A clause of several accesses, handed to the body as a `Vec<G>`.
pub struct Many<'a, G> {
    declared: Vec<Declared<'a>>,
    marker: Invariant<G>,
}

impl<'a, G> Many<'a, G> {
    pub(crate) fn new(declared: Vec<Declared<'a>>) -> Self {
        Many { declared, marker: PhantomData }
    }

    pub(super) fn of(clauses: Vec<One<'a, G>>) -> Self {
        Self::new(clauses.into_iter().map(|clause| clause.declared).collect())
    }
}

impl<'a, G: Guard> Clause<'a> for Many<'a, G> {
    type Guard = Vec<G>;
    type Shape = usize;

    fn shape(&self) -> usize {
        self.declared.len()
    }

    fn count(&self) -> usize {
        self.declared.len()
    }

    fn declare(&self, each: &mut impl FnMut(&Declared<'a>)) {
        self.declared.iter().for_each(each);
    }

    fn guard(count: usize, cursor: &mut Cursor) -> Vec<G> {
        (0..count).map(|_| G::of_access(cursor.next_open())).collect()
    }

    fn is_whole(guards: &Vec<G>, cursor: &mut Cursor) -> bool {
        guards.iter().all(|guard| cursor.has_more() && guard.is_only_of(cursor.next_access()))
    }

    fn forget(guards: Vec<G>) {
        guards.into_iter().for_each(mem::forget);
    }
}
