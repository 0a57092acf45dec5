//! The uses that a task may make of a region.

use std::fmt;

/// The use of a region by a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The region is read.
    In,
    /// The region is overwritten.
    Out,
    /// The region is read and written.
    InOut,
    /// The region is updated through shared references, at the same time as by other concurrent
    /// accesses.
    Concurrent,
    /// The region is read and written, before or after other commutative accesses.
    Commutative,
    /// Values are folded into the region, at the same time as by other accesses of the same
    /// reduction.
    Reduction,
}

impl Mode {
    /// Returns `true` if the task may change the region.
    #[inline]
    pub fn writes(self) -> bool {
        !matches!(self, Mode::In)
    }

    /// Returns `true` if two accesses of one task to one element, in these modes, exclude each
    /// other.
    pub(crate) fn excludes(self, other: Mode) -> bool {
        self != other || !matches!(self, Mode::In | Mode::Concurrent)
    }

    /// Returns `true` if accesses of different tasks in this mode leave their order open.
    #[inline]
    pub(crate) fn is_unordered(self) -> bool {
        matches!(self, Mode::Concurrent | Mode::Commutative | Mode::Reduction)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::In => "in",
            Mode::Out => "out",
            Mode::InOut => "inout",
            Mode::Concurrent => "concurrent",
            Mode::Commutative => "commutative",
            Mode::Reduction => "reduction",
        })
    }
}
