//! What is known of a message that was carried, or that waits.

use crate::rank::Rank;
use crate::tag::Tag;

/// Where a message came from, what it was about, and how long it was. The default is that of an
/// empty message of rank 0 with tag 0, for places that are filled later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The sender.
    pub source: Rank,
    /// Its tag.
    pub tag: Tag,
    /// Its length.
    pub bytes: u64,
    end: End,
}

/// A whole word: a flag would be copied together with what else the bytes around it may be in a
/// result, in pieces, and whoever reads them at once would wait for those to reach memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
enum End {
    #[default]
    Came,
    Cancelled,
}

impl Status {
    /// That of a receive that was cancelled.
    pub(crate) const CANCELLED: Status =
        Status { source: Rank(0), tag: Tag(0), bytes: 0, end: End::Cancelled };

    #[inline]
    pub(crate) fn new(source: Rank, tag: Tag, bytes: u64) -> Self {
        Status { source, tag, bytes, end: End::Came }
    }

    /// Whether the operation was cancelled: there was no message.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.end == End::Cancelled
    }

    /// The length in elements of `T`; `None` if it is no whole number of them.
    pub fn elements<T>(&self) -> Option<u64> {
        let size = size_of::<T>() as u64;
        match size {
            0 => (self.bytes == 0).then_some(0),
            _ => self.bytes.is_multiple_of(size).then_some(self.bytes / size),
        }
    }
}

/// A status in two whole words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    /// Source and tag.
    from: u64,
    /// Bytes, or [`CANCELLED`].
    bytes: u64,
}

/// Longer than any message.
const CANCELLED: u64 = u64::MAX;

impl From<Status> for Packed {
    #[inline]
    fn from(status: Status) -> Self {
        let Status { source: Rank(source), tag: Tag(tag), bytes, end } = status;
        let bytes = if end == End::Cancelled { CANCELLED } else { bytes };
        Packed { from: u64::from(source) << 32 | u64::from(tag), bytes }
    }
}

impl From<Packed> for Status {
    #[inline]
    fn from(Packed { from, bytes }: Packed) -> Self {
        match bytes {
            CANCELLED => Status::CANCELLED,
            bytes => Status::new(Rank((from >> 32) as u32), Tag(from as u32), bytes),
        }
    }
}
