//! What a receive or a probe takes.

use crate::rank::Rank;
use crate::tag::Tag;

/// One value, or any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Select<T> {
    /// Whatever comes first.
    Any,
    /// Only this.
    Only(T),
}

/// Messages of every source.
pub const ANY_SOURCE: Select<Rank> = Select::Any;
/// Messages of every tag.
pub const ANY_TAG: Select<Tag> = Select::Any;

impl<T> From<T> for Select<T> {
    fn from(value: T) -> Self {
        Select::Only(value)
    }
}

impl<T: Copy + PartialEq> Select<T> {
    /// Whether `value` is selected.
    #[inline]
    pub fn takes(self, value: T) -> bool {
        match self {
            Select::Any => true,
            Select::Only(only) => only == value,
        }
    }
}
