//! Matching of messages to receives.
//!
//! Receives and messages that are not matched yet are queued in lists by selection, so that a match
//! costs a few searches in a hash table however many there are.
//!
//! A receive is in one list: that of its own selection. Four selections accept a message: its own
//! source and tag, one of them, or any. The receive for a message is therefore searched for in four
//! lists, and the oldest of their heads is taken. A message is in the list of its own source and
//! tag, and from the first search for a selection with a wildcard on in the three others as well.

mod key;
mod lists;
mod matcher;

pub(crate) use self::key::{Key, Selection};
pub(crate) use self::lists::EntryId;
pub(crate) use self::matcher::Matcher;
