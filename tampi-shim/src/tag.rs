//! Tags of messages.

use std::fmt;

/// Label of a message: a receive takes messages with its tag only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

impl Tag {
    /// The largest tag, on every transport.
    pub const MAX: Tag = Tag((1 << 28) - 1);
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tag {}", self.0)
    }
}
