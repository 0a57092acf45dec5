//! Statuses: source, tag and length of a message.

use crate::rank::Rank;
use crate::tag::Tag;

/// Source, tag and length of a message. The default is the status of an empty message of rank 0
/// with tag 0, for elements that are written later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Rank that sent the message.
    pub source: Rank,
    /// Tag of the message.
    pub tag: Tag,
    /// Length of the message in bytes.
    pub bytes: u64,
    completion: Completion,
}

/// Flag of a status, as wide as a word: a narrower flag would be stored in a piece of its own, and
/// a load of the whole word right after it would stall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
enum Completion {
    #[default]
    Received,
    Cancelled,
}

impl Status {
    /// Status of a receive that was cancelled.
    pub(crate) const CANCELLED: Status =
        Status { source: Rank(0), tag: Tag(0), bytes: 0, completion: Completion::Cancelled };

    #[inline]
    pub(crate) fn new(source: Rank, tag: Tag, bytes: u64) -> Self {
        Status { source, tag, bytes, completion: Completion::Received }
    }

    /// Returns `true` if the operation was cancelled and received no message.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.completion == Completion::Cancelled
    }

    /// Returns the length in elements of `T`, or `None` if it is not a whole number of elements.
    pub fn elements<T>(&self) -> Option<u64> {
        let size = size_of::<T>() as u64;
        match size {
            0 => (self.bytes == 0).then_some(0),
            _ => self.bytes.is_multiple_of(size).then_some(self.bytes / size),
        }
    }
}

/// A status packed into two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedStatus {
    /// Source and tag.
    from: u64,
    /// Bytes, or [`CANCELLED`].
    bytes: u64,
}

/// Longer than any message.
const CANCELLED: u64 = u64::MAX;

impl From<Status> for PackedStatus {
    #[inline]
    fn from(status: Status) -> Self {
        let Status { source: Rank(source), tag: Tag(tag), bytes, completion } = status;
        let bytes = if completion == Completion::Cancelled { CANCELLED } else { bytes };
        PackedStatus { from: u64::from(source) << 32 | u64::from(tag), bytes }
    }
}

impl From<PackedStatus> for Status {
    #[inline]
    fn from(PackedStatus { from, bytes }: PackedStatus) -> Self {
        match bytes {
            CANCELLED => Status::CANCELLED,
            bytes => Status::new(Rank((from >> 32) as u32), Tag(from as u32), bytes),
        }
    }
}
