//! Regions: parts of arrays that tasks declare.

use std::fmt;
use std::marker::PhantomData;

use ndarray::Ix1;

use super::{ArrayCore, Rect};

/// How a task uses a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Read.
    In,
    /// Overwritten.
    Out,
    /// Read and written.
    InOut,
}

impl Mode {
    /// Whether the task may change the region.
    #[inline]
    pub fn writes(self) -> bool {
        !matches!(self, Mode::In)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::In => "in",
            Mode::Out => "out",
            Mode::InOut => "inout",
        })
    }
}

/// A part of an [`Array`](crate::Array) (`D` = `Ix1`, contiguous) or of a
/// [`Matrix`](crate::Matrix) (`D` = `Ix2`, a rectangle).
///
/// Making one costs nothing and checks nothing; a region outside its array is an error of the
/// spawn that declares it.
pub struct Region<'a, T, D = Ix1> {
    core: &'a ArrayCore,
    rect: Rect,
    marker: PhantomData<(fn() -> T, D)>,
}

impl<'a, T, D> Region<'a, T, D> {
    pub(crate) fn new(core: &'a ArrayCore, rect: Rect) -> Self {
        Region { core, rect, marker: PhantomData }
    }

    /// The rectangle in its array. A one-dimensional range is one row.
    pub fn rect(&self) -> Rect {
        self.rect
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.rect.rows() * self.rect.cols()
    }

    /// Whether it holds no element.
    pub fn is_empty(&self) -> bool {
        self.rect.is_empty()
    }

    /// The number that identifies its array in this process.
    pub fn array_id(&self) -> u64 {
        self.core.id()
    }

    pub(crate) fn core(&self) -> &'a ArrayCore {
        self.core
    }
}

impl<T, D> Clone for Region<'_, T, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, D> Copy for Region<'_, T, D> {}

impl<T, D> fmt::Debug for Region<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "array {}{}", self.core.id(), self.rect)
    }
}
