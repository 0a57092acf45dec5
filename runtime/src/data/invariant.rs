//! Invariance of handles in the type of their elements.

use std::marker::PhantomData;

/// A marker that makes a handle of elements of type `T` invariant in `T`: they are read and written
/// through other handles. The marker is `Send` and `Sync` whatever `T` is.
pub(crate) type Invariant<T> = PhantomData<fn(T) -> T>;
