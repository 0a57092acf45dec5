//! Sources and tags that a receive or a probe accepts.

use crate::rank::Rank;
use crate::tag::Tag;

/// Filter that accepts one value, or any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Select<T> {
    /// Accepts every value.
    Any,
    /// Accepts this value only.
    Only(T),
}

/// Accepts messages of every source.
pub const ANY_SOURCE: Select<Rank> = Select::Any;
/// Accepts messages with every tag.
pub const ANY_TAG: Select<Tag> = Select::Any;

impl<T> From<T> for Select<T> {
    fn from(value: T) -> Self {
        Select::Only(value)
    }
}

impl<T: Copy + PartialEq> Select<T> {
    /// Returns `true` if the filter accepts `value`.
    #[inline]
    pub fn takes(self, value: T) -> bool {
        match self {
            Select::Any => true,
            Select::Only(only) => only == value,
        }
    }
}
