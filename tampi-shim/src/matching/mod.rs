//! Matching: which receive takes which message.
//!
//! Receives that wait and messages that nobody took yet are kept in lists by what they are looked
//! up by, so that a match costs a few look-ups however many there are.
//!
//! A receive is in one list: that of its own selection. A message may be taken by four selections:
//! its own source and tag, one of them, or any; a receive that waits is therefore looked for in
//! four lists, and the oldest of their heads is the one. A message that waits is in the list of its
//! own source and tag, and from the first time that a selection with a wildcard is looked up, in
//! the three others as well.

mod key;
mod lists;
mod matcher;

pub(crate) use self::key::{Key, Selection};
pub(crate) use self::lists::EntryId;
pub(crate) use self::matcher::Matcher;
