//! Names of arrays in reports.

use std::fmt;
use std::sync::Arc;

use super::Rect;

/// The name of an array in reports: its number, its name if it was given one, and its shape.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ArrayLabel {
    id: u64,
    name: Option<Arc<str>>,
    extent: Rect,
}

impl ArrayLabel {
    pub(super) fn new(id: u64, name: Option<Arc<str>>, extent: Rect) -> Self {
        ArrayLabel { id, name, extent }
    }

    /// Returns the number that identifies the array in this process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the name that the array was given.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the number of rows, 1 for a one-dimensional array.
    pub fn rows(&self) -> usize {
        self.extent.rows()
    }

    /// Returns the number of columns, or the length.
    pub fn cols(&self) -> usize {
        self.extent.cols()
    }

    /// Returns a part of the array, shown without the shape of the whole.
    pub(crate) fn part(&self, rect: Rect) -> LabelledPart<'_> {
        LabelledPart { label: self, rect }
    }
}

/// The number and the name, as texts show them.
struct Title<'a>(&'a ArrayLabel);

impl fmt::Display for Title<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "array {}", self.0.id)?;
        self.0.name().map_or(Ok(()), |name| write!(f, " `{name}`"))
    }
}

/// A part of an array, as texts show it.
pub(crate) struct LabelledPart<'a> {
    label: &'a ArrayLabel,
    rect: Rect,
}

impl fmt::Display for LabelledPart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Title(self.label), self.rect)
    }
}

impl fmt::Display for ArrayLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.rows(), self.cols()) {
            (1, len) => write!(f, "{} of {len} elements", Title(self)),
            (rows, cols) => write!(f, "{} of {rows} x {cols}", Title(self)),
        }
    }
}

impl fmt::Debug for ArrayLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
