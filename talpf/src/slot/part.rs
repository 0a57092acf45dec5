//! Parts of a slot: as operations name them, and as they are found at a rank.

use ibverbs_sim::RemoteAddress;
use talpf_runtime::Rect;

/// The part of a slot that a remote region is.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    /// Elements from this one on, as many as the local region has.
    From(u64),
    /// A rectangle. One without an end has that of the slot.
    Rectangle(Rect),
}

/// The elements of a remote region of a certain length, which exist.
#[derive(Clone, Copy)]
pub(crate) struct Located {
    /// Address of the first element.
    pub(crate) remote: RemoteAddress,
    /// Number of the first element.
    pub(crate) index: u64,
    /// Number of the element after the last one.
    pub(crate) end: u64,
    /// Number of pieces, each in a row of its own.
    pub(crate) rows: u32,
    /// Number of elements from one piece to the next.
    pub(crate) stride: u32,
    /// `true` if an operation on them needs a window.
    pub(crate) windowed: bool,
}
